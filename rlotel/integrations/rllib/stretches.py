"""Phases that an iteration goes in and out of: sampling, updates and transfers of weights.

Some algorithms call `training_step` thousands of times an iteration, and each does a little of everything. So a
phase is paused and resumed: it is one observation, of all the time that was in it, and one span, which begins
where the phase first did and is as long as all of its stretches together.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from rlotel import context
from rlotel.integrations.loops import EVALUATE, Loops, within
from rlotel.integrations.tables import Timed
from rlotel.patching import Call
from rlotel.phases import Loop, Phase


@dataclass(eq=False)
class _Stretches:
    """One phase of the present iteration."""

    phase: Phase
    loop: Loop
    open: int = 1
    """How many calls are in it now; a learner's thread may be beside the one that runs the loop."""


class Stretches:
    """The phases of the present iteration. Safe in any thread."""

    def __init__(self, loops: Loops) -> None:
        self._loops = loops
        self._recorder = loops.recorder
        self._lock = threading.RLock()
        self._here: dict[Timed, _Stretches] = {}
        self._waiting: Call | None = None
        loops.closing.append(self._close)

    def begin(self, timed: Timed, call: Call) -> None:
        """A watched call that is in a phase begins, to be ended by `end`."""
        here = context.current()
        if within(here, timed.phase) or within(here, EVALUATE):
            return
        with self._lock:
            loop = self._loops.current
            if loop is None or loop.ended or self._loops.ended is not None:
                self._loops.open(timed, call)  # as an algorithm is made or restored
            elif (known := self._here.get(timed)) is not None:
                self._go_on(known)
                call.notes["stretches"], call.notes["entered"] = known, context.enter(known.phase)
            elif (phase := self._loops.open(timed, call)) is not None:
                call.notes.pop("phase")
                call.notes["stretches"] = self._here[timed] = _Stretches(phase, loop)

    def end(self, call: Call) -> None:
        """It has returned or failed, as `after` and as `failed` of a watch."""
        known: _Stretches | None = call.notes.pop("stretches", None)
        if known is None:
            self._loops.shut(call)
            return
        if (entered := call.notes.pop("entered", None)) is not None:
            context.leave(entered)
        with self._lock:
            known.open -= 1
            if known.phase.ended:
                return
            if call.error is not None or known.loop.ended:
                self._here = {timed: other for timed, other in self._here.items() if other is not known}
                self._recorder.close_phase(known.phase, call.error)
            elif not known.open:
                known.loop.pause(known.phase, self._recorder.now())
                self._recorder.ages.end(known.phase)

    def wait(self, timed: Timed) -> None:
        """From here on, and over many calls, the trainer waits, until `waited`."""
        if self._waiting is None and self._loops.current is not None:
            call = self._waiting = Call(None, (), {}, None)
            self.begin(timed, call)
            if (entered := call.notes.pop("entered", None)) is not None:
                context.leave(entered)  # what is done meanwhile is not done in the wait

    def waited(self) -> None:
        """What it waited for is there, or it waits no more."""
        call, self._waiting = self._waiting, None
        if call is not None:
            self.end(call)

    def _go_on(self, known: _Stretches) -> None:
        known.open += 1
        if known.open == 1:
            known.loop.resume(known.phase, self._recorder.now())
            self._recorder.ages.begin(known.phase)

    def _close(self) -> None:
        """The iteration is over. A call that is still in a phase ends it later."""
        self.waited()
        with self._lock:
            ended = self._loops.ended
            now = self._recorder.now() if ended is None else ended
            for known in self._here.values():
                if not known.open:
                    known.loop.resume(known.phase, now)
                    self._recorder.close_phase(known.phase, at=now)
            self._here = {}
