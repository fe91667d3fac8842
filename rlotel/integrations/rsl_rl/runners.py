"""The runner that is learning: its iterations, and what of them its environment and its algorithm do."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from statistics import fmean
from typing import Any

from rlotel.integrations.episodes import Episodes
from rlotel.integrations.loops import Loops
from rlotel.integrations.rsl_rl import setup
from rlotel.integrations.rsl_rl.tables import EPISODES, LEARNING, RESTORE, ROLLOUT, SAVE, UPDATE
from rlotel.integrations.tables import Timed
from rlotel.patching import Call, Patches
from rlotel.recorder import Recorder
from rlotel.semconv.attributes import PhaseName
from rlotel.words import SAMPLE, TRAIN

HARD_EXITS = ("isaacsim", "omni.isaac.kit")
"""Modules whose applications end the process without Python: what is known must be gone before."""
FLUSH_SECONDS = 4.5

_NOBODY: Any = object()
"""Whoever is asked for while no runner learns."""


class Runners:
    """Follows the runner that is learning; there is one at a time."""

    def __init__(self, patches: Patches, recorder: Recorder) -> None:
        self.loops = Loops(recorder)
        self._patches = patches
        self._recorder = recorder
        self._undo: list[Callable[[], None]] = []
        self._world = 1
        self._next = 0
        self._learnt: Callable[[], Any] | None = None
        """The runner that learnt last."""
        self._rollout: Call | None = None
        """The sample phase that is open."""
        self._episodes = Episodes()
        self._steps = 0
        self._step_seconds = 0.0
        self._updates = 0
        self._let_go()

    def _let_go(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._runner = self._env = self._alg = self._optimizer = _NOBODY

    # The runner.

    def begin(self, call: Call) -> None:
        """`learn` begins. That of a subclass calls that of its base, and is the same."""
        if self._runner is not _NOBODY:
            return
        runner = self._runner = call.notes["learns"] = call.instance
        self._env, self._alg = runner.env, runner.alg
        self._optimizer = getattr(runner.alg, "optimizer", _NOBODY)
        self._world = int(getattr(runner, "gpu_world_size", 1))
        again = self._learnt is None or self._learnt() is runner
        if again or runner.current_learning_iteration > 0:  # the last, or one that was loaded, is done again
            self._next = runner.current_learning_iteration
        self._learnt = weakref.ref(runner)  # another one's are counted on: nothing of its is done again
        self._episodes = Episodes()
        self._watch(runner)
        setup.identify(self._recorder, runner)
        rows = runner.cfg["num_steps_per_env"] * runner.env.num_envs * self._world
        batches = getattr(runner.alg, "num_mini_batches", None)
        self.loops.setup.sample_batch_size = rows
        self.loops.setup.train_batch_size = rows // batches if batches else None
        if self.loops.reports:
            if setup.log_dir(runner) is not None:
                self._recorder.checkpoints.expect(None)
            self._recorder.loop_is_here()

    def end(self, call: Call) -> None:
        """It has ended, or failed."""
        if "learns" not in call.notes:
            return
        self._sampled(call.error)
        self._came_over()
        self.loops.close(call.error)
        self._let_go()
        if any(name in sys.modules for name in HARD_EXITS):
            self._recorder.process.flush(FLUSH_SECONDS)

    def load(self, call: Call) -> None:
        """A checkpoint is about to be loaded."""
        setup.identify(self._recorder, call.instance)
        self.loops.open(RESTORE, call)

    def _watch(self, runner: Any) -> None:
        alg, loops = type(runner.alg), self.loops
        self._watch_method(type(runner.env), "step", before=self._steps_env, after=self._stepped)
        self._watch_method(alg, "act", before=self._acts)
        advantage = self._of_runner(Timed(PhaseName.ADVANTAGE.value))
        self._watch_method(alg, "compute_returns", before=advantage, after=loops.shut, failed=loops.shut)
        update = self._of_runner(Timed(TRAIN))
        self._watch_method(alg, "update", before=update, after=self._updated, failed=self._update_failed)
        optimizer = getattr(runner.alg, "optimizer", None)
        if optimizer is not None:
            self._watch_method(type(optimizer), "step", after=self._optimized)
        if not type(runner).__module__.startswith("rsl_rl."):
            self._watch_method(type(runner), "save", **loops.phase(SAVE))  # which may do more than its base's

    def _watch_method(self, kind: type, name: str, **observers: Callable[[Call], None]) -> None:
        if hasattr(kind, name):
            self._undo.append(self._patches.watch_method(kind, name, **observers))

    # What it calls. Every object of these classes does; only the runner's own are meant.

    def _acts(self, call: Call) -> None:
        if self._rollout is None and call.instance is self._alg:
            self._sample()

    def _steps_env(self, call: Call) -> None:
        if call.instance is not self._env:
            return
        if self._rollout is None:
            self._sample()
        call.notes["began"] = self._recorder.now()

    def _stepped(self, call: Call) -> None:
        began = call.notes.get("began")
        if began is None:
            return
        self._steps += 1
        self._step_seconds += self._recorder.now() - began
        if self._world == 1:  # those of other ranks are not known here
            self._episodes.add(call.result[2])

    def _sample(self) -> None:
        """An iteration begins; the one before has been logged and saved meanwhile, and ends."""
        self._came_over()
        self.loops.begin(self._next)
        self._next += 1
        self._rollout = Call(None, (), {}, None)
        self.loops.open(ROLLOUT, self._rollout)

    def _sampled(self, error: BaseException | None = None) -> None:
        """The rollout of the iteration is complete, or failed."""
        rollout, self._rollout = self._rollout, None
        if rollout is None:
            return
        if self._steps:
            environments = self._env.num_envs * self._world
            rows = self._steps * environments
            # Environments step side by side: each has taken the whole time.
            self.loops.add(SAMPLE, samples=rows, steps=rows, step_seconds=self._step_seconds * environments)
        self._episodes.send()
        rollout.error = error
        self.loops.shut(rollout)
        self._steps, self._step_seconds = 0, 0.0

    def _of_runner(self, timed: Timed) -> Callable[[Call], None]:
        def before(call: Call) -> None:
            if call.instance is self._alg:
                self._sampled()
                self.loops.open(timed, call)

        return before

    def _optimized(self, call: Call) -> None:
        if call.instance is self._optimizer:
            self._updates += 1

    def _updated(self, call: Call) -> None:
        if call.instance is not self._alg:
            return
        self._count_updates()
        self.loops.shut(call)
        self.loops.tell(call.result, UPDATE)
        self.loops.tell({"learning_rate": getattr(call.instance, "learning_rate", None)}, LEARNING)
        logger = getattr(self._runner, "logger", None)
        if logger is not None:
            self._finished(vars(logger))

    def _update_failed(self, call: Call) -> None:
        if call.instance is self._alg:
            self._count_updates()
        self.loops.shut(call)

    def _count_updates(self) -> None:
        self.loops.add(TRAIN, steps=self._updates or None)  # with optimizers of its own it is not known
        self._updates = 0

    # Episodes.

    def logged(self, call: Call) -> None:
        """The runner logs its local variables."""
        if call.instance is self._runner:
            self._finished(call.args[0] if call.args else call.kwargs["locs"])

    def _finished(self, known: Any) -> None:
        """Of the last 100 episodes that ended, as rsl_rl logs it; without a log directory it does not look.

        With RND the returns that it logs have the reward of curiosity in them: then the environment's are apart.
        """
        returns, lengths = known.get("erewbuffer") or known.get("rewbuffer"), known.get("lenbuffer")
        if returns and lengths:
            self.loops.tell({"returns": fmean(returns), "lengths": fmean(lengths)}, EPISODES)

    def _came_over(self) -> None:
        self.loops.add(SAMPLE, episodes=self._episodes.arrived())
