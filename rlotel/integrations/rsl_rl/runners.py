"""The runner that is learning: its iterations, and what of them its environment and its algorithm do."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from statistics import fmean
from typing import Any

from rlotel import context
from rlotel.integrations.episodes import Episodes
from rlotel.integrations.loops import Loops, Setup
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
        self._kinds: set[type] = set()
        """The classes of runners of users' own that are watched."""
        self._met: weakref.WeakSet[Any] = weakref.WeakSet()
        """The runners that have learnt here."""
        self._latest: Callable[[], Any] | None = None
        """The one of them that learnt last."""
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

    def made(self, call: Call) -> None:
        """A runner was made: if `learn` is its user's own, it need not call that of its base."""
        kind: Any = type(call.instance)
        if kind not in self._kinds and not kind.learn.__module__.startswith("rsl_rl."):
            self._kinds.add(kind)
            self._patches.watch_method(kind, "learn", before=self.begin, after=self.end, failed=self.end)

    def begin(self, call: Call) -> None:
        """`learn` begins. That of a subclass calls that of its base, and is the same."""
        if self._runner is not _NOBODY:
            return
        runner = self._runner = call.notes["learns"] = call.instance
        self._env, self._alg = runner.env, runner.alg
        self._optimizer = getattr(runner.alg, "optimizer", _NOBODY)
        self._world = setup.world_size(runner)
        self._recorder.process.rank = getattr(runner, "gpu_global_rank", self._recorder.process.rank)
        self._next = self._first(runner)
        self._met.add(runner)
        self._latest = weakref.ref(runner)
        self._episodes = Episodes()
        self._watch(runner)
        self.loops.setup = Setup()
        self._identify(runner)
        with self._recorder.faults.contain("the batches of a runner"):
            self.loops.setup = setup.batches(runner)
        if self.loops.reports:
            if setup.log_dir(runner) is not None:
                self._recorder.checkpoints.expect(None)
            self._recorder.loop_is_here()

    def _first(self, runner: Any) -> int:
        """The number of its first iteration. Where it learnt last, or was loaded, it does its last one again.

        Any other is counted on from the one before: nothing of that is done again.
        """
        begun = int(runner.current_learning_iteration)
        loaded = begun > 0 and runner not in self._met
        return begun if loaded or self._latest is None or self._latest() is runner else self._next

    def end(self, call: Call) -> None:
        """It has ended, or failed."""
        if "learns" not in call.notes:
            return
        try:
            self._sampled(call.error)
            self._came_over()
        finally:
            self.loops.close(call.error)
            self._let_go()
        if any(name in sys.modules for name in HARD_EXITS):
            self._recorder.process.flush(FLUSH_SECONDS)

    def stop(self) -> None:
        """Nothing is watched any more: the rollout that goes on in this thread is left alone."""
        if self._rollout is not None and self._rollout.notes.get("phase") is context.current():
            self.loops.shut(self._rollout)
        self.loops.stop()

    def load(self, call: Call) -> None:
        """A checkpoint is about to be loaded."""
        self._identify(call.instance)
        self.loops.open(RESTORE, call)

    def _identify(self, runner: Any) -> None:
        with self._recorder.faults.contain("who a runner is"):  # an environment may raise whatever it is asked
            setup.identify(self._recorder, runner)

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
            self._episodes.add(call.result[-2])  # the last but one in every release

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
        rollout.error = error
        try:
            self._count_steps()
            self._episodes.send()
        finally:
            self.loops.shut(rollout)

    def _count_steps(self) -> None:
        steps, self._steps = self._steps, 0
        seconds, self._step_seconds = self._step_seconds, 0.0
        if steps:
            environments = self._env.num_envs * self._world
            rows = steps * environments
            # Environments step side by side: each has taken the whole time.
            self.loops.add(SAMPLE, samples=rows, steps=rows, step_seconds=seconds * environments)

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
