"""The iterations of NeMo RL: which timer is open in them, and when each begins and ends.

State is kept a `Timer` object: a validation, a collector of rollouts and a loop have one each. An iteration begins
as its timer starts `total_step_time`, and ends where the loop logs its times, as of when that timer last stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from rlotel import context
from rlotel.integrations.nemo_rl.setup import UNKNOWN, Setup
from rlotel.integrations.nemo_rl.tables import ANYWHERE, STEP, TIMERS
from rlotel.integrations.tables import Timed
from rlotel.patching import Call
from rlotel.phases import Loop, Phase
from rlotel.recorder import Recorder

EVALUATE = "evaluate"


Key = tuple[int, str]
"""A timer, by its identity, and one of its labels."""


@dataclass(eq=False)
class Open:
    """A phase that a timer has opened."""

    key: Key
    phase: Phase
    entered: context.Entered
    handled: BaseException | None
    """What was being handled before it began, which is no failure of it."""
    stopped: float = 0.0
    """When the timer stopped, of a wait that may go on."""


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
        self._open: dict[Key, Open] = {}
        self._wait: Open | None = None
        self.setup: Setup | None = None
        """Of the training that runs in this process; None in a worker."""
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

    # What timers tell.

    def started(self, call: Call) -> None:
        """After `Timer.start`."""
        label, now = _label(call), self._recorder.now()
        if label == STEP:
            self._begin(call.instance, now)
            return
        timed = TIMERS.get(label)
        if timed is None or not (label in ANYWHERE or self._of(call.instance)):
            return
        key = id(call.instance), label
        if self._wait is not None and self._wait.key == key:
            self._open[key], self._wait = self._wait, None
        elif (phase := self.open(timed, now)) is not None:
            self._open[key] = Open(key, phase, context.enter(phase), sys.exc_info()[1])
            self.evaluating += phase.name == EVALUATE

    def stopping(self, call: Call) -> None:
        """Before `Timer.stop`: what we do must not be in what it measures."""
        call.notes["now"] = self._recorder.now()

    def stopped(self, call: Call) -> None:
        """After `Timer.stop`, which runs in a `finally`."""
        label, now, error = _label(call), call.notes["now"], sys.exc_info()[1]
        if label == STEP:
            self._pause(call.instance, now, error)
            return
        opened = self._open.pop((id(call.instance), label), None)
        if opened is None:
            return
        error = None if error is opened.handled else error
        opened.stopped = now
        if opened.phase.waits and error is None and self._of(call.instance):
            # A trainer that waits asks again and again, with nothing in between: that is one wait.
            self._wait = opened
        else:
            self._end(opened, error)

    def reset(self, call: Call) -> None:
        """Before `Timer.reset`: where no `Logger` of NeMo RL's is used, this is the end of an iteration."""
        if not (call.args or call.kwargs) and self._of(call.instance):
            self.close()

    # Phases.

    def open(self, timed: Timed, at: float | None = None) -> Phase | None:
        """Open the phase that a timer stands for; it began `at` an earlier moment."""
        self._end_wait()
        metric, span = (self.setup or UNKNOWN).attributes(timed)
        phase = self._recorder.open_phase(timed.phase, metric, span, waits=timed.waits, at=at)
        if phase is not None and self.current is not None:
            self.current.latest[timed.phase, timed.role] = phase
        return phase

    def _end(self, opened: Open, error: BaseException | None) -> None:
        self.evaluating -= opened.phase.name == EVALUATE
        context.leave(opened.entered)
        self._recorder.close_phase(opened.phase, error, at=opened.stopped)

    def _end_wait(self) -> None:
        wait, self._wait = self._wait, None
        if wait is not None:
            self._end(wait, None)

    # Iterations.

    def _of(self, timer: object) -> Iteration | None:
        """The iteration that a timer measures."""
        return self.current if self.current is not None and self.current.timer is timer else None

    def _begin(self, timer: object, now: float) -> None:
        iteration = self._of(timer)
        if iteration is not None:
            iteration.stopped = None  # it goes on: nothing was logged yet
            return
        self.close()
        loop = self._recorder.open_loop(self.next, at=now)
        if loop is not None:
            self.current = Iteration(timer, loop, context.enter(loop), sys.exc_info()[1])

    def _pause(self, timer: object, now: float, error: BaseException | None) -> None:
        iteration = self._of(timer)
        if iteration is not None:
            iteration.stopped = now
            if error is not None and error is not iteration.handled:
                self.close(error)

    def logged(self, step: object) -> None:
        """The iteration was logged, with this number."""
        self.close()
        if isinstance(step, int):
            self.next = step + 1

    def close(self, error: BaseException | None = None) -> None:
        """The iteration that is open, if one is, has ended when its timer last stopped."""
        self._end_wait()
        iteration, self.current = self.current, None
        if iteration is None:
            return
        context.leave(iteration.entered)
        for tell in self.ending:
            with self._recorder.faults.contain("the end of an iteration"):
                tell(iteration)
        self._recorder.close_loop(iteration.loop, error, at=iteration.stopped)

    def stop(self) -> None:
        """Nothing is watched any more: what is open here leaves no trace."""
        while self._open:
            opened = self._open.popitem()[1]
            context.leave(opened.entered)
            self._recorder.ages.end(opened.phase)
            opened.phase.abandon()
        iteration, self.current, self._wait = self.current, None, None
        if iteration is not None:
            context.leave(iteration.entered)
            self._recorder.ages.end(iteration.loop)
            iteration.loop.abandon()

    def end(self, error: BaseException | None) -> None:
        """The training function has ended, and whatever is still open with it."""
        while self._open:
            opened = self._open.popitem()[1]
            opened.stopped = self._recorder.now()
            self._end(opened, error)
        self.close(error)
        self.setup = None


def _label(call: Call) -> str:
    return str(call.args[0] if call.args else call.kwargs.get("label"))
