"""Whose each moment of a loop is: exclusive time, which adds up to the loop.

A moment belongs to the innermost open phase. Where several run at once (asynchronous RL) they share it equally.
Where none is open, or all that is open is a wait, the moment is idle.
"""

from __future__ import annotations

from collections import Counter

from rlotel.words import IDLE

MOST_EVENTS = 4096
"""Begins and ends that are kept in order to be sorted; then the moments so far are given away."""


class Shares:
    """Exclusive seconds by phase name, of one loop. Not safe in threads: its loop's lock is held around it.

    Phases may be told of in any order (threads race, and some are told of after the fact), so their begins and
    ends are sorted by time before any moment is given away.
    """

    def __init__(self, now: float) -> None:
        self.seconds: dict[str, float] = {IDLE: 0.0}
        """Complete once the loop is closed."""
        self._mark = now
        self._events: list[tuple[float, object, str | None, object]] = []
        self._settling = False
        self._open: dict[object, tuple[str, object]] = {}
        """Open phases: whose moment it is, and the phase they are inside of."""
        # Kept up to date, not found out anew at each event: thousands of rollouts may be open at once.
        self._within: Counter[object] = Counter()
        """How many open phases are directly inside of a phase."""
        self._innermost: Counter[str] = Counter()
        """How many open phases that have none inside of them a name has, waits aside."""

    def begin(self, phase: object, owner: str, inside: object, now: float) -> None:
        """A phase opens; `owner` is its name, or idle for a wait."""
        self._note((now, phase, owner, inside))

    def end(self, phase: object, now: float) -> None:
        """A phase closes."""
        self._note((now, phase, None, None))

    def close(self, now: float) -> None:
        """The loop is over."""
        self._settle(now)
        self._give(now)

    def _note(self, event: tuple[float, object, str | None, object]) -> None:
        self._events.append(event)
        if len(self._events) >= MOST_EVENTS and not self._settling:
            self._settling = True
            self._settle(event[0])
            self._settling = False

    def _settle(self, until: float) -> None:
        # Whoever interrupts this (a signal handler) notes events of its own.
        events, self._events = self._events, []
        events.sort(key=lambda event: event[0])
        for when, phase, owner, inside in events:
            self._give(min(when, until))
            if owner is not None:
                self._opens(phase, owner, inside)
            else:
                self._closes(phase)

    def _opens(self, phase: object, owner: str, inside: object) -> None:
        self._open[phase] = owner, inside
        if not self._within[phase]:
            self._count(owner, 1)
        if inside is not None:
            self._within[inside] += 1
            if self._within[inside] == 1 and inside in self._open:
                self._count(self._open[inside][0], -1)

    def _closes(self, phase: object) -> None:
        if phase not in self._open:
            return
        owner, inside = self._open.pop(phase)
        if not self._within[phase]:
            self._count(owner, -1)
        if inside is not None:
            self._within[inside] -= 1
            if not self._within[inside] and inside in self._open:
                self._count(self._open[inside][0], 1)

    def _count(self, owner: str, change: int) -> None:
        if owner != IDLE:
            self._innermost[owner] += change

    def _give(self, until: float) -> None:
        """Give the moments from the last mark to the phases that are open."""
        passed = until - self._mark
        if passed <= 0:
            return
        self._mark = until
        owners = [owner for owner, open_ in list(self._innermost.items()) if open_] or [IDLE]
        for owner in owners:
            self.seconds[owner] = self.seconds.get(owner, 0.0) + passed / len(owners)
