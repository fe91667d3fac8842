"""Whose each moment of a loop is: exclusive time, which adds up to the loop.

A moment belongs to the innermost open phase. Where several run at once (asynchronous RL) they share it equally.
Where none is open, or all that is open is a wait, the moment is idle.
"""

from __future__ import annotations

from rlotel.words import IDLE


class Shares:
    """Exclusive seconds by phase name, of one loop. Not safe in threads: its loop's lock is held around it."""

    def __init__(self, now: float) -> None:
        self.seconds: dict[str, float] = {IDLE: 0.0}
        self._mark = now
        self._open: dict[int, tuple[str, int | None]] = {}
        """Open phases, by an identity of theirs: whose moment it is, and the phase they are inside of."""

    def begin(self, phase: int, owner: str, inside: int | None, now: float) -> None:
        """A phase opens; `owner` is its name, or idle for a wait."""
        self._settle(now)
        self._open[phase] = owner, inside

    def end(self, phase: int, now: float) -> None:
        """A phase closes."""
        self._settle(now)
        self._open.pop(phase, None)

    def close(self, now: float) -> None:
        """The loop is over."""
        self._settle(now)

    def _settle(self, now: float) -> None:
        passed = now - self._mark
        self._mark = now
        if passed <= 0:
            return
        containing = {inside for _, inside in self._open.values()}
        owners = {owner for phase, (owner, _) in self._open.items() if phase not in containing}
        owners.discard(IDLE)
        for owner in owners or {IDLE}:
            self.seconds[owner] = self.seconds.get(owner, 0.0) + passed / max(len(owners), 1)
