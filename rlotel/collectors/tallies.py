"""Counters of a driver as counters of a session: they begin at 0, and neither a reset nor a wrap makes them fall.

The driver counts since it was loaded, for all that ran since; a session's counter says what happened in its time.
"""

from __future__ import annotations

from collections.abc import Hashable


def increase(last: float, now: float, bits: int | None = None) -> float:
    """By how much a counter grew between two readings. Where that cannot be known for sure, the least it can be.

    Args:
        last: the reading before.
        now: the reading.
        bits: the counter's width, after which it begins at 0 again; None if it does not wrap.
    """
    if now >= last:
        return now - last
    if bits is not None and 2**bits > last >= 2 ** (bits - 1) > now:
        return now + 2.0**bits - last
    return now  # it was reset to 0, and has counted this much since


class Tallies:
    """The totals of one sampler. A total belongs to a series, a reading to the counter that it was read from."""

    def __init__(self) -> None:
        self._read: dict[Hashable, float] = {}
        self._totals: dict[Hashable, float] = {}

    def follow(self, series: Hashable, counter: Hashable, reading: float, bits: int | None = None) -> float:
        """Take a reading of a driver's counter; the first one begins the total at 0.

        Returns:
            The series' total, in the counter's unit.
        """
        last = self._read.get(counter)
        self._read[counter] = reading
        return self.add(series, 0.0 if last is None else increase(last, reading, bits))

    def add(self, series: Hashable, amount: float) -> float:
        """Add to a total, and return it."""
        total = self._totals[series] = self._totals.get(series, 0.0) + amount
        return total
