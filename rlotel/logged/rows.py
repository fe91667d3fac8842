"""Log calls become iterations: one step that was logged is one `rl.loop`, told once all of it is there.

Gauges are set as they are logged. Durations and counts wait until the step is over: until another one is logged,
the logger says so, or the run ends.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlotel import gates
from rlotel.errors import log
from rlotel.integrations.loops import Loops
from rlotel.integrations.tables import Gauge
from rlotel.logged.iterations import Iteration, Timing, record
from rlotel.logged.tables import Count, Duration, Table
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv.attributes import RlotelRefusalReason as Reason
from rlotel.words import LOOP

MOST_UNMAPPED = 1000
"""Names of keys without a meaning that are kept."""
LONGEST = 366 * 24 * 3600.0
"""Seconds: what takes longer was logged in another unit, or after a line of another time. A span that began before
1970 would take all others with it that are exported together."""
DEEPEST = 20
"""How many mappings within each other are looked through."""


@dataclass
class _Row:
    """What was logged of one step so far."""

    step: int | None
    at: float
    """When the last of it was logged."""
    keys: set[str] = field(default_factory=set)
    held: dict[str, tuple[float, Any]] = field(default_factory=dict)
    """Durations and counts, by key: when they were logged, and what; the last word of a step counts."""


class Rows:
    """The steps that one trainer logs. Safe in any thread.

    Args:
        table: what the keys mean.
        recorder: where it is told.
        finished: told when a step that is over had ended, once it is recorded.
    """

    def __init__(
        self, table: Table, recorder: Recorder, finished: Callable[[float], None] = lambda _ended: None
    ) -> None:
        self._table = table
        self._recorder = recorder
        self._finished = finished
        self._loops = Loops(recorder)
        self._begin_anew()
        self._number = -1
        self._steps: dict[str, int] = {}
        self._totals: dict[str, float] = {}
        self._warned = False
        self.unmapped: dict[str, None] = {}
        """The keys that were logged and mean nothing here, in the order they came."""
        self.mapped: set[str] = set()
        """The keys of the table that were logged."""
        self.iterations = 0
        """How many steps are over."""

    def _begin_anew(self) -> None:
        """As in a forked child: what was open is its parent's, whose other threads may have held the lock."""
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._row: _Row | None = None
        self._ended: float | None = None

    def log(
        self, values: Mapping[str, Any], step: object = None, *, at: float | None = None, whole: bool = False
    ) -> None:
        """Something is logged.

        Args:
            values: by key. Mappings in it are looked through: what is in them has a key with a dot.
            step: the step it is logged for, if the logger is told one.
            at: when it was, if not now; a moment of the recorder's clock.
            whole: whether that is all of the step.
        """
        if self._pid != os.getpid():
            self._begin_anew()
        with self._lock:
            meant = {}
            for key, value in flat(values):
                if key in self._table.entries:
                    meant[key] = value
                elif key == self._table.step:
                    step = value
                elif (name := self._table.of_evaluation(key)) is not None:
                    self._loops.evaluated({name: value})
                elif key != self._table.time and len(self.unmapped) < MOST_UNMAPPED:
                    self.unmapped.setdefault(key)
            if meant:
                self._add(meant, self._integer(step), self._recorder.now() if at is None else at)
            if whole:
                self.finish()

    def finish(self) -> None:
        """The present step is over; without one it does nothing."""
        with self._lock:
            row, self._row = self._row, None
            if row is None:
                return
            self.iterations += 1
            self._number = self._number + 1 if row.step is None else row.step
            iteration = self._iteration(row)
            self._ended = row.at
            record(self._recorder, self._loops, iteration)
            self._finished(row.at)

    def _add(self, meant: Mapping[str, Any], step: int | None, at: float) -> None:
        row = self._row
        if row is not None and self._is_next(row, step, meant):
            self.finish()
            row = None
        if row is None:
            if not self.mapped and self._loops.reports:
                self._recorder.loop_is_here()
            row = self._row = _Row(step, at)
        if row.step is None:
            row.step = step
        row.at = max(row.at, at)
        for key, value in meant.items():
            self.mapped.add(key)
            row.keys.add(key)
            if step is not None:
                self._steps[key] = step
            entries = self._table.entries[key]
            if gauges := tuple(entry for entry in entries if isinstance(entry, Gauge)):
                self._loops.tell({key: value}, {key: gauges})
            if len(gauges) < len(entries) and value is not None:
                row.held[key] = at, value

    def _is_next(self, row: _Row, step: int | None, meant: Mapping[str, Any]) -> bool:
        """Whether what is logged now is of another step."""
        if step is None or row.step is None:
            return not row.keys.isdisjoint(meant)
        if step >= row.step:
            return step > row.step
        if any(self._steps.get(key, step - 1) >= step for key in meant):
            return True  # the run was resumed from a checkpoint
        if not self._warned:
            self._warned = True
            log.warning(
                "rlotel: %s is logged for step %d while others are at %d: keys are counted against different "
                "steps. The higher ones are taken for the iterations; say step= if that is wrong (said once)",
                next(iter(meant)),
                step,
                row.step,
            )
        return False

    def _integer(self, step: object) -> int | None:
        if step is None:
            return None
        try:
            return gates.integer(step)
        except gates.Refused as refused:
            self._recorder.instruments.refuse(attr.LOOP_ITERATION.name, refused.reason)
            return None

    def _iteration(self, row: _Row) -> Iteration:
        began, timings, counts = self._ended, [], []
        # In the order of the table, which is its user's; a dictionary that is logged may have any.
        for key, entries in self._table.entries.items():
            at, value = row.held.get(key, (0.0, None))
            for entry in entries if value is not None else ():
                if isinstance(entry, Duration):
                    seconds = self._seconds(entry, value)
                    if not seconds:
                        continue  # 0 says that there was none of it
                    if entry.phase == LOOP:
                        began = row.at - seconds
                    else:
                        timings.append(Timing(entry, seconds, at))
                elif isinstance(entry, Count) and (amount := self._amount(key, entry, value)) is not None:
                    counts.append((entry, amount))
        if began is not None and not 0 <= row.at - began <= LONGEST:
            began = None  # a file may go back in time
        timings.sort(key=lambda timing: timing.logged)
        return Iteration(self._number, began, row.at, timings, counts)

    def _seconds(self, duration: Duration, value: Any) -> float | None:
        number = self._recorder.instruments.amount(duration.phase, value)
        if number is None or number * duration.factor <= LONGEST:
            return None if number is None else number * duration.factor
        self._recorder.instruments.refuse(duration.phase, Reason.OVERFLOW)
        return None

    def _amount(self, key: str, count: Count, value: Any) -> float | None:
        number = self._recorder.instruments.amount(count.metric.name, value)
        if number is None or not count.cumulative:
            return number
        before = self._totals.get(key)
        self._totals[key] = number
        return None if before is None else max(0.0, number - before)


def flat(values: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    """What is logged by key, that of mappings within each other by their keys joined by dots."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if type(value) is float or not isinstance(value, Mapping):
            yield name, value
        elif depth < DEEPEST:
            yield from flat(value, f"{name}.", depth + 1)
