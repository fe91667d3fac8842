"""Rounds of sampling and updating, and which of them are an iteration together."""

from __future__ import annotations

from collections.abc import Callable

from rlotel.integrations.loops import Bracket, Loops
from rlotel.integrations.tables import Timed
from rlotel.patching import Call
from rlotel.recorder import Recorder

TINY = 0.1
"""Seconds: a round that is shorter is not worth an iteration of its own."""
GATHERED = 1.0
"""Seconds that an iteration of several rounds takes at least; a round that is longer is one by itself."""

Counts = dict[str, float | None]


class Rounds:
    """The rounds of one `learn` after the other.

    A round's phases are opened as they begin. Those of rounds that are gathered are too many for that: their time
    is added up, and told as one phase of each kind, one after the other.

    Args:
        recorder: where they are told.
        counts: what was done in a phase since it was last asked, as keywords of `Loops.add`.
    """

    def __init__(self, recorder: Recorder, counts: Callable[[Timed], Counts]) -> None:
        self.loops = Loops(recorder)
        self.paused = 0
        """How many evaluations and checkpoints are open, one in the other."""
        self._now = recorder.now
        self._counts = counts
        self._each = True
        """Whether each round is an iteration."""
        self._done = 0
        self._loop_began = self._round_began = 0.0
        self._doing: Timed | None = None
        self._since = 0.0
        self._phase: Call | None = None
        """That of what is being done, where it has one."""
        self._paused_doing: Timed | None = None
        self._stretch = 0.0
        """Since when time is added up."""
        self._seconds: dict[Timed, float] = {}

    @property
    def busy(self) -> bool:
        """Whether something is being done in a round."""
        return self._doing is not None

    def start(self, *, tiny: bool) -> None:
        """`learn` begins, with rounds that are expected to be tiny or not."""
        self._each = not tiny

    def next(self) -> None:
        """A round begins, and so the one before is over."""
        now = self._now()
        if self.loops.current is not None:
            took = now - self._round_began
            if took < TINY:
                self._each = False
            elif took >= GATHERED:
                self._each = True
            if self._each or now - self._loop_began >= GATHERED:
                self.close()
        if self.loops.current is None:
            self._loop_began = now
            self.loops.begin(self._done + 1)
        self._done += 1
        self._round_began = now

    def close(self, error: BaseException | None = None) -> None:
        """The iteration is over."""
        try:
            self.end(error)
            self._settle()
        finally:
            self.loops.close(error)

    def stop(self) -> None:
        """Nothing is watched any more: what goes on in a round, or goes on after a pause, is none of ours."""
        self._seconds, self._paused_doing = {}, None
        if self._phase is None:
            self._doing = None
        self.loops.stop()

    # What is done in a round.

    def begin(self, timed: Timed) -> None:
        """A phase of a round begins."""
        self._doing, self._since = timed, self._now()
        if self._each:
            self._phase = Call(None, (), {}, None)
            self.loops.open(timed, self._phase)
        elif not self._seconds:
            self._stretch = self._since

    def end(self, error: BaseException | None = None) -> None:
        """It is over, or failed."""
        timed, self._doing = self._doing, None
        phase, self._phase = self._phase, None
        if timed is None:
            return
        if phase is not None:
            phase.error = error
            try:
                self.loops.add(timed.phase, timed.role, **self._counts(timed))
            finally:
                self.loops.shut(phase)
            return
        self._seconds[timed] = self._seconds.get(timed, 0.0) + self._now() - self._since
        if error is not None:
            self._settle(timed, error)

    def _settle(self, failed: Timed | None = None, error: BaseException | None = None) -> None:
        """Tell of the time that was added up."""
        at, gathered = self._stretch, self._seconds
        self._seconds = {}
        for timed, seconds in gathered.items():
            phase = Call(None, (), {}, None, error=error if timed is failed else None)
            self.loops.open(timed, phase, at=at)
            at += seconds
            try:
                self.loops.add(timed.phase, timed.role, **self._counts(timed))
            finally:
                self.loops.shut(phase, at=at)

    # What is none of a round, though it is called in one.

    def apart(self, timed: Timed) -> Bracket:
        """Make a phase of each call of a function, for which what it is called in stands still."""

        def before(call: Call) -> None:
            self.pause()
            self.loops.open(timed, call)

        def after(call: Call) -> None:
            self.loops.shut(call)
            self.resume()

        return {"before": before, "after": after, "failed": after}

    def pause(self) -> None:
        """What is being done is interrupted."""
        self.paused += 1
        if self.paused == 1:
            self._paused_doing = self._doing
            self.end()
            self._settle()

    def resume(self) -> None:
        """It goes on."""
        self.paused -= 1
        if not self.paused and self._paused_doing is not None:
            self.begin(self._paused_doing)
