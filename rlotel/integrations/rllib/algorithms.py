"""Algorithms: an iteration is one `step`, of which `train` adds only the calls of loggers and callbacks.

What is watched is what does the work, in whatever order and however often an algorithm's `training_step` does it:
RLlib's own timers are moving averages, over iterations too.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from rlotel.integrations.configuration import checkpoint_tier
from rlotel.integrations.loops import Loops
from rlotel.integrations.ray.ends import END_WAIT
from rlotel.integrations.rllib import setup, tables
from rlotel.integrations.rllib.stretches import Stretches
from rlotel.integrations.rllib.updates import Updates
from rlotel.integrations.tables import Timed
from rlotel.patching import Call
from rlotel.recorder import Recorder
from rlotel.semconv import metrics as m
from rlotel.words import SAMPLE


class Algorithms:
    """The algorithm in this process."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.loops = Loops(recorder, alone=True)
        self.stretches = Stretches(self.loops)
        self.updates = Updates(recorder, self.loops, self.stretches)
        self._latest: Callable[[], Any] = lambda: None
        """The algorithm that was met last, if it is still there."""

    # Its life.

    def configured(self, call: Call) -> None:
        """After a configuration is made, or is told its environment: most likely there will be an algorithm."""
        config = call.instance
        kind = getattr(config, "algo_class", None)
        if isinstance(kind, type):
            self._recorder.identity.offer(**setup.identity(kind.__name__, config))

    def made(self, call: Call) -> None:
        """Before an algorithm is made. Tune's trials share what their launcher knows; each is a run of its own."""
        if (trial := setup.trial(call.arguments.get("config"))) is not None:
            self._recorder.identity.insist(run_id=f"{self._recorder.identity.run_id}.{trial}")

    def set_up(self, call: Call) -> None:
        """Before `setup`, in which the actors are created."""
        config = call.arguments["config"]
        self._meet(call.instance, config)
        role = setup.gpu_role(config, learns=True)
        if role is not None and not setup.learners(config):
            self._recorder.process.use_gpus(str(role))
        self._recorder.loop_is_here()

    def _meet(self, algorithm: Any, config: object) -> None:
        self._latest = weakref.ref(algorithm)
        self.loops.another()
        self._recorder.identify(**setup.identity(type(algorithm).__name__, config))
        self._recorder.equip(setup.hardware(config))
        self.loops.setup = setup.setup(config)

    def begin(self, call: Call) -> None:
        """Before `step`. RLlib's results count iterations from 1."""
        if self._latest() is not call.instance:  # several take turns, or it was set up before it was watched
            self._meet(call.instance, call.instance.config)
        self.loops.begin(call.instance.iteration + 1)

    def end(self, call: Call) -> None:
        """After it, with its result."""
        self.loops.end()
        try:
            self._tell(call.instance.config, call.result)
        finally:
            self.loops.close()

    def failed(self, call: Call) -> None:
        """Where it failed."""
        self.loops.end(call.error)

    def over(self, _call: Call) -> None:
        """After an algorithm was stopped. If it is a trial's, its actor will be gone without being asked."""
        self.loops.close()
        if not self._recorder.process.launcher:
            self._recorder.process.flush(END_WAIT)

    # Phases.

    def sampling(self, call: Call) -> None:
        """Before an env runner of this very process samples, be it that all others are dead."""
        self.stretches.waited()
        self.stretches.begin(tables.GENERATE, call)

    def ask(self, _call: Call) -> None:
        """Before an asynchronous algorithm looks for what its env runners have sampled. It asks all the time."""
        self.stretches.wait(tables.WAIT)

    def asked(self, call: Call) -> None:
        """After it. What there is comes first: references to episodes."""
        if call.result[0]:
            self.stretches.waited()

    def states(self, call: Call) -> None:
        """Before states go to the env runners, with weights or without."""
        weights = call.kwargs.get("rl_module_state") is not None
        self.stretches.begin(tables.WEIGHTS if weights else tables.CONNECTORS, call)

    def saving(self, call: Call) -> None:
        """Before a checkpoint is saved."""
        self._checkpoint(tables.SAVE, call)

    def restoring(self, call: Call) -> None:
        """Before one is restored."""
        self._checkpoint(tables.RESTORE, call)

    def _checkpoint(self, timed: Timed, call: Call) -> None:
        folder = call.args[0] if call.args else next(iter(call.kwargs.values()), None)
        self.loops.setup.checkpoint_tier = checkpoint_tier(folder)
        self.loops.open(timed, call)

    def restore_runners(self, call: Call) -> None:
        """Before it is looked whether env runners have come back, as often as `training_step` is called."""
        call.notes["began"] = self._recorder.now()

    def restored_runners(self, call: Call) -> None:
        """After it: mostly all were alive, else it waited for the others, and told those that are alive again."""
        if call.result or self._recorder.now() - call.notes["began"] > tables.NOTHING_DONE:
            phase = self._recorder.open_phase(tables.RECOVER, at=call.notes["began"])
            self._recorder.close_phase(phase)

    def evaluated(self, call: Call) -> None:
        """After an evaluation, in an iteration or asked for by itself."""
        self.loops.shut(call)
        runners = tables.part(call.result, "env_runners")
        if tables.total(runners.get("num_episodes")):
            self.loops.evaluated({name: runners[name] for name in tables.SCORES if name in runners})

    # Results.

    def _tell(self, config: object, result: object) -> None:
        """Count what an iteration did, and set the values of it."""
        runners = tables.part(result, "env_runners")
        episodes = tables.total(runners.get("num_episodes"))
        rows = tables.total(runners.get("num_module_steps_sampled"))
        if rows is None:
            rows = tables.total(runners.get("num_agent_steps_sampled"))
        steps = tables.total(runners.get("num_env_steps_sampled"))
        self.loops.add(SAMPLE, samples=rows, episodes=episodes, steps=steps)
        if episodes:
            self.loops.tell(runners, tables.EPISODES)
        learners = tables.part(result, "learners")
        self.updates.count(config, learners)
        self._values(tables.trained(learners))

    def _values(self, trained: Mapping[str, Mapping[str, Any]]) -> None:
        alone = len(trained) == 1
        for module, values in trained.items():
            self.loops.tell(values, dict(tables.of_module(None if alone else module)))
            behind = tables.total(values.get(tables.UPDATES_BEHIND))
            if alone and behind is not None:
                self._recorder.set(m.SAMPLE_STALENESS, max(0.0, behind - 1))
