"""The iterations of NeMo RL: which timer is open in them, and when each begins and ends.

State is kept a `Timer` object: a validation, a collector of rollouts and a loop have one each. An iteration begins
as its timer starts `total_step_time`, and ends where the loop logs its times, as of when that timer last stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from rlotel import context
from rlotel.integrations.nemo_rl.setup import Setup
from rlotel.integrations.nemo_rl.tables import STEP, TIMERS, Timed
from rlotel.patching import Call
from rlotel.phases import Loop, Phase
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv.attributes import CheckpointOperation
from rlotel.words import CHECKPOINT, SAMPLE, SYNC, TRAIN

LEARNER = "learner"
"""Where weights come from."""


@dataclass(eq=False)
class Open:
    """A phase that a timer has opened."""

    phase: Phase
    entered: context.Entered
    handled: BaseException | None
    """What was being handled before it began, which is no failure of it."""


@dataclass(eq=False)
class Iteration:
    """One iteration that has not been logged yet."""

    timer: object
    loop: Loop
    entered: context.Entered
    handled: BaseException | None
    """What was being handled before it began."""
    stopped: float | None = None
    """When `total_step_time` last stopped; None while it runs."""
    latest: dict[tuple[str, str | None], Phase] = field(default_factory=dict)
    """The last phase of each name and role, open or not."""


class Iterations:
    """Follows the timers of this process. Timers of one loop are used by one thread or task at a time."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[tuple[int, str], Open] = {}
        self.setup: Setup | None = None
        """Of the training function that runs; None in a worker."""
        self.current: Iteration | None = None
        self.next = 1
        """The number that the next iteration will be logged with."""
        self.evaluating = 0
        """How many validations are open."""
        self.ending: list[Callable[[Iteration], None]] = []
        """What is to be told of an iteration before it closes."""

    def running(self, name: str, role: str | None = None) -> Phase | None:
        """The phase of that name, if a timer has it open now."""
        latest = self.current.latest.get((name, role)) if self.current else None
        return latest if latest is not None and not latest.ended else None

    def started(self, call: Call) -> None:
        """After `Timer.start`."""
        label, now = _label(call), self._recorder.now()
        if label == STEP:
            self._begin(call.instance, now)
            return
        timed = TIMERS.get(label)
        if timed is None or not (timed.anywhere or self._is_loop(call.instance)):
            return
        phase = self.open(timed, now)
        if phase is None:
            return
        self._open[id(call.instance), label] = Open(phase, context.enter(phase), sys.exc_info()[1])
        if timed.phase == "evaluate":
            self.evaluating += 1

    def stopping(self, call: Call) -> None:
        """Before `Timer.stop`: what we do must not be in what it measures."""
        call.notes["now"] = self._recorder.now()

    def stopped(self, call: Call) -> None:
        """After `Timer.stop`, which runs in a `finally`."""
        label, now = _label(call), call.notes["now"]
        if label == STEP:
            self._pause(call.instance, now)
            return
        opened = self._open.pop((id(call.instance), label), None)
        if opened is None:
            return
        if opened.phase.name == "evaluate":
            self.evaluating -= 1
        context.leave(opened.entered)
        error = sys.exc_info()[1]
        self._recorder.close_phase(opened.phase, None if error is opened.handled else error, at=now)

    def reset(self, call: Call) -> None:
        """Before `Timer.reset`: where no `Logger` of NeMo RL's is used, this is the end of an iteration."""
        if not (call.args or call.kwargs) and self._is_loop(call.instance):
            self.close()

    def open(self, timed: Timed, at: float | None = None) -> Phase | None:
        """Open the phase that a timer stands for; it began `at` an earlier moment."""
        setup = self.setup
        metric: dict[str, str | bool | None] = {attr.ROLE.name: timed.role}
        span: dict[str, int | None] = {}
        if timed.phase == SAMPLE:
            metric = {attr.SAMPLE_KIND.name: timed.kind}
            span = {attr.SAMPLE_BATCH_SIZE.name: setup.rollouts if setup else None}
        elif timed.phase == TRAIN:
            span = {attr.TRAIN_BATCH_SIZE.name: setup.update_rows if setup else None}
        elif timed.phase == SYNC:
            metric = {attr.SYNC_SOURCE.name: LEARNER, attr.SYNC_DESTINATION.name: setup.engine if setup else None}
        elif timed.phase == CHECKPOINT:
            metric = {
                attr.CHECKPOINT_OPERATION.name: CheckpointOperation.SAVE.value,
                attr.CHECKPOINT_TIER.name: setup.checkpoint_tier if setup else None,
                attr.CHECKPOINT_BLOCKING.name: True,
            }
        phase = self._recorder.open_phase(timed.phase, metric, span, waits=timed.waits, at=at)
        if phase is not None and self.current is not None:
            self.current.latest[timed.phase, timed.role] = phase
        return phase

    def _is_loop(self, timer: object) -> bool:
        return self.current is not None and self.current.timer is timer

    def _begin(self, timer: object, now: float) -> None:
        if self._is_loop(timer):
            assert self.current is not None
            self.current.stopped = None  # it goes on: nothing was logged yet
            return
        self.close()
        loop = self._recorder.open_loop(self.next, at=now)
        if loop is not None:
            self.current = Iteration(timer, loop, context.enter(loop), sys.exc_info()[1])

    def _pause(self, timer: object, now: float) -> None:
        if not self._is_loop(timer):
            return
        assert self.current is not None
        self.current.stopped = now
        error = sys.exc_info()[1]
        if error is not None and error is not self.current.handled:
            self.close(error)

    def logged(self, step: object) -> None:
        """The iteration was logged, with this number."""
        self.close()
        if isinstance(step, int):
            self.next = step + 1

    def close(self, error: BaseException | None = None) -> None:
        """The iteration that is open, if one is, has ended when its timer last stopped."""
        iteration, self.current = self.current, None
        if iteration is None:
            return
        context.leave(iteration.entered)
        for tell in self.ending:
            with self._recorder.faults.contain("the end of an iteration"):
                tell(iteration)
        self._recorder.close_loop(iteration.loop, error, at=iteration.stopped)


def _label(call: Call) -> str:
    return str(call.args[0] if call.args else call.kwargs.get("label"))
