"""The model that is learning: its rounds, and what they do."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

from rlotel.integrations import devices
from rlotel.integrations.rounds import Counts, Rounds
from rlotel.integrations.stable_baselines3 import setup
from rlotel.integrations.stable_baselines3.setup import Environments
from rlotel.integrations.stable_baselines3.tables import EPISODES, ROLLOUT, TRAINED, UPDATE
from rlotel.integrations.tables import Timed
from rlotel.patching import Call, Observer, Patches
from rlotel.recorder import Recorder
from rlotel.words import SAMPLE

_NOBODY: Any = object()
"""Whoever is asked for while no model learns."""


class Learning:
    """Follows the model that is learning; there is one at a time."""

    def __init__(self, patches: Patches, recorder: Recorder, environments: Environments) -> None:
        self.rounds = Rounds(recorder, self._counts)
        self.rounds.loops.closing.append(self._tell)
        self._patches = patches
        self._recorder = recorder
        self._environments = environments
        self._undo: list[Callable[[], None]] = []
        self._met: set[type] = set()
        self._forget()

    def _forget(self) -> None:
        self._model = self._env = self._optimizer = _NOBODY
        self._steps = self._ended = self._episodes = self._updates = 0
        self._step_seconds = 0.0
        self._recorded: dict[str, Any] = {}

    # The model.

    def met(self, call: Call) -> None:
        """A model was made, or is about to be loaded."""
        self._meet(type(call.instance))
        setup.identify(self._recorder, call.instance, self._environments)

    def _meet(self, kind: Any) -> None:
        """Watch what a class of algorithms does in a round: now, for its users may wrap it before they learn."""
        if kind in self._met:
            return
        self._met.add(kind)
        self._watch(kind, "collect_rollouts", self._collects, self._collected, self._failed)
        self._watch(kind, "train", self._trains, self._trained, self._failed)
        if not kind.learn.__module__.startswith("stable_baselines3."):  # it may not call its base's
            self._watch(kind, "learn", self.begin, self.end, self.end)

    def begin(self, call: Call) -> None:
        """`learn` begins. That of a subclass calls that of its base, and is the same."""
        if self._model is not _NOBODY:
            return
        model = self._model = call.notes["learns"] = call.instance
        self._env = model.env
        self._meet(type(model))  # it may have been made before
        self._undo.append(self._watch(type(model.env), "step", self._steps_it, self._stepped))
        if setup.on_policy(model):  # others are told how many steps to take
            self._optimizer = getattr(model.policy, "optimizer", _NOBODY)
            self._undo.append(self._watch(type(self._optimizer), "step", after=self._optimized))
        with self._recorder.faults.contain("what a model says of itself"):
            setup.identify(self._recorder, model, self._environments)
            devices.use(self._recorder, model.device)
        self.rounds.loops.setup = setup.batches(model)
        self.rounds.start(tiny=not setup.on_policy(model))
        self._recorder.loop_is_here()

    def end(self, call: Call) -> None:
        """It has ended, or failed."""
        if "learns" not in call.notes:
            return
        try:
            self.rounds.close(call.error)
        finally:
            while self._undo:
                self._undo.pop()()
            self._forget()

    def _watch(
        self,
        kind: type,
        name: str,
        before: Observer | None = None,
        after: Observer | None = None,
        failed: Observer | None = None,
    ) -> Callable[[], None]:
        if not hasattr(kind, name):
            return lambda: None
        return self._patches.watch_method(kind, name, before=before, after=after, failed=failed)

    # Its rounds. All objects of these classes call these, and a class calls its base's: the outermost are meant.

    def _collects(self, call: Call) -> None:
        if call.instance is self._model and not self.rounds.busy:
            call.notes["its"] = True
            self.rounds.next()
            self.rounds.begin(ROLLOUT)

    def _collected(self, call: Call) -> None:
        if "its" in call.notes:
            self.rounds.end()

    def _trains(self, call: Call) -> None:
        if call.instance is self._model and not self.rounds.busy:
            call.notes["its"] = True
            self.rounds.begin(UPDATE)

    def _trained(self, call: Call) -> None:
        if "its" not in call.notes:
            return
        if (steps := call.kwargs.get("gradient_steps")) is not None:
            self._updates += steps  # each may be one of several optimizers
        self.rounds.end()
        self._recorded = dict(call.instance.logger.name_to_value)  # to be dumped with the next rollout

    def _failed(self, call: Call) -> None:
        if "its" in call.notes:
            self.rounds.end(call.error)

    def _steps_it(self, call: Call) -> None:
        if call.instance is self._env and not self.rounds.paused:  # or it is being evaluated in
            call.notes["began"] = self._recorder.now()

    def _stepped(self, call: Call) -> None:
        if (began := call.notes.get("began")) is None:
            return
        self._steps += 1
        self._step_seconds += self._recorder.now() - began
        _, _, dones, infos = call.result
        if ended := sum(map(bool, dones)):
            self._ended += ended
            self._episodes += sum("episode" in info for info in infos)

    def _optimized(self, call: Call) -> None:
        if call.instance is self._optimizer:
            self._updates += 1

    # Numbers.

    def _counts(self, timed: Timed) -> Counts:
        if timed.phase != SAMPLE:
            updates, self._updates = self._updates, 0
            return {"steps": updates or None}
        steps, seconds = self._steps, self._step_seconds
        # With a monitor, what it calls an episode: Atari games say that they are done with each life.
        episodes = self._episodes if self._model.ep_info_buffer else self._ended
        self._steps = self._ended = self._episodes = 0
        self._step_seconds = 0.0
        if not steps:  # of an environment whose `step` is no method, or an object's own
            return {}
        rows = steps * self._env.num_envs
        # Environments step side by side: each has taken the whole time.
        step_seconds = seconds * self._env.num_envs
        return {"samples": rows, "steps": rows, "episodes": episodes, "step_seconds": step_seconds}

    def _tell(self) -> None:
        """An iteration is about to close."""
        self.rounds.loops.tell(self._recorded, TRAINED)
        self._recorded = {}
        monitored = [info for info in self._model.ep_info_buffer or () if info]
        if monitored:
            means = {"returns": fmean(info["r"] for info in monitored)}
            means["lengths"] = fmean(info["l"] for info in monitored)
            self.rounds.loops.tell(means, EPISODES)
