"""What grows while nothing happens: the ages of what is open and of what was last achieved.

They are read when metrics are exported, by the exporting thread's own clock, since a run that hangs calls nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from rlotel.instruments import NONE, Instruments, Readings
from rlotel.phases import Interval, Loop
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m


class Ages:
    """The open intervals and the last progress of one process."""

    def __init__(self, instruments: Instruments, now: Callable[[], float]) -> None:
        self._now = now
        self._open: dict[int, Interval] = {}
        self._open_loops: dict[int, Loop] = {}
        self.reset()
        instruments.watch(m.LOOP_AGE, self._loops)
        instruments.watch(m.PHASE_AGE, self._phases)
        instruments.watch(m.PROGRESS_AGE, self._progress)

    def reset(self) -> None:
        """Forget everything, as a forked child must."""
        self._lock = threading.RLock()
        for interval in list(self._open.values()):
            interval.abandon()
        self._open, self._open_loops = {}, {}
        self._progressed: float | None = None

    def begin(self, interval: Interval) -> None:
        """An interval opens."""
        with self._lock:
            self._open[id(interval)] = interval
            if isinstance(interval, Loop):
                self._open_loops[id(interval)] = interval

    def end(self, interval: Interval) -> None:
        """An interval closes."""
        with self._lock:
            self._open.pop(id(interval), None)
            self._open_loops.pop(id(interval), None)

    def progress(self) -> None:
        """The run got further: it started, or finished a loop or a train step."""
        self._progressed = self._now()

    def stand_back(self) -> None:
        """The run's progress is another process's to report."""
        self._progressed = None

    def latest_loop(self) -> Loop | None:
        """The loop that was opened last and is still open, for work in threads that carry no context."""
        # Copied, not looked through: a signal handler may open something meanwhile, with the same lock, and a
        # dictionary that changes as it is gone through backwards has crashed Python 3.11.
        with self._lock:
            loops = list(self._open_loops.values())
        return loops[-1] if loops else None

    def open_since(self, name: str) -> float | None:
        """When the first of the phases of this name that are open now began; None if none is."""
        return min((one.started for one in self.intervals() if one.name == name), default=None)

    def intervals(self) -> list[Interval]:
        """All that is open, in the order it was opened."""
        with self._lock:
            return list(self._open.values())

    def _loops(self) -> Readings:
        started = [one.started for one in self.intervals() if isinstance(one, Loop)]
        return [(self._now() - min(started), NONE)] if started else []

    def _phases(self) -> Readings:
        oldest: dict[str, float] = {}
        for one in self.intervals():
            if not isinstance(one, Loop):
                oldest[one.name] = min(one.started, oldest.get(one.name, one.started))
        now = self._now()
        return [(now - started, {attr.PHASE_NAME.name: name}) for name, started in oldest.items()]

    def _progress(self) -> Readings:
        return [] if self._progressed is None else [(self._now() - self._progressed, NONE)]
