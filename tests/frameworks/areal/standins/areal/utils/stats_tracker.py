"""Timers: as in AReaL, what everyone calls is a method that was bound as the module was loaded."""

from collections.abc import Iterator
from contextlib import contextmanager

from areal import script


class DistributedStatsTracker:
    """Keeps what was timed."""

    def __init__(self) -> None:
        self.timed: list[tuple[str, float]] = []

    @contextmanager
    def record_timing(self, key: str) -> Iterator[None]:
        """Time the body of a `with`."""
        started = script.now()
        try:
            yield
        finally:
            self.timed.append((key, script.now() - started))


DEFAULT_TRACKER = DistributedStatsTracker()
record_timing = DEFAULT_TRACKER.record_timing
