"""What the environments of many rollouts do at the same time, told as one phase of scoring and one of tools."""

from __future__ import annotations

import threading
from collections import defaultdict

from rlotel.integrations.tables import Timed
from rlotel.phases import Interval
from rlotel.recorder import Recorder


class Stepped:
    """When environments were stepped, in any threads, since it was last told."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._intervals: dict[Timed, list[tuple[float, float]]] = defaultdict(list)
        self._errors: dict[Timed, BaseException] = {}

    def add(self, timed: Timed, began: float, ended: float, error: BaseException | None) -> None:
        """One step was taken, or failed."""
        with self._lock:
            self._intervals[timed].append((began, ended))
            if error is not None:
                self._errors.setdefault(timed, error)

    def tell(self, recorder: Recorder, inside: Interval | None) -> None:
        """Make a phase of each kind of step: as long as any was taken, from when the first was."""
        with self._lock:
            intervals, errors = self._intervals, self._errors
            self._intervals, self._errors = defaultdict(list), {}
        for timed, taken in intervals.items():
            first, seconds = min(began for began, _ in taken), _union(taken)
            if inside is not None:
                first = max(first, inside.started)
            phase = recorder.open_phase(timed.phase, inside=inside, at=first)
            recorder.close_phase(phase, errors.get(timed), at=min(first + seconds, recorder.now()))


def _union(intervals: list[tuple[float, float]]) -> float:
    seconds, reached = 0.0, float("-inf")
    for began, ended in sorted(intervals):
        seconds += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return seconds
