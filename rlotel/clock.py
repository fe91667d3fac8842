"""The two clocks everything is timed with, in one object so that tests can set the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Durations come from `monotonic`, timestamps from `wall_ns`."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never goes back."""

    def wall_ns(self) -> int:
        """Nanoseconds since 1970."""


class SystemClock:
    """The machine's clocks."""

    monotonic = staticmethod(time.perf_counter)
    wall_ns = staticmethod(time.time_ns)
