"""The four golden signals of a run, read from the telemetry that arrived and from nothing else."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv import spans as s
from rlotel.words import CHECKPOINT, IDLE, LOOP, SYNC, TRAIN, WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlotel.capture import Capture
    from rlotel.otlp_records import Attributes, Point, SpanRecord
    from rlotel.semconv.types import Attribute, Metric

_WORDS = {word.span.name: name for name, word in WORDS.items()} | {s.LOOP.name: LOOP}
_LAST = (TRAIN, SYNC, CHECKPOINT, "evaluate", IDLE)


@dataclass
class Phase:
    """One phase of the loop, or its idle time.

    Attributes:
        name: as in `rl.phase.name`.
        share: of the time of all loops, 0 to 1; None while no loop has ended.
        seconds: how long each of its spans took.
        errors: the `error.type` of each that failed.
    """

    name: str
    share: float | None = None
    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def median(self) -> float | None:
        """The median of its durations, in seconds."""
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def last(self) -> float | None:
        """The last of its durations, in seconds."""
        return self.seconds[-1] if self.seconds else None


@dataclass
class _Series:
    attributes: Attributes
    values: dict[int, float] = field(default_factory=dict)


class Signals:
    """What was received of one run, kept so that every question of a view is cheap. For one thread."""

    def __init__(self) -> None:
        self.identity: Attributes = {}
        """Who the telemetry speaks of: the attributes that every point carries."""
        self.points = 0
        """Data points received."""
        self.spans = 0
        """Spans received."""
        self.traces: set[str] = set()
        """Ids of the traces they belong to."""
        self.iteration = 0
        """The iteration that ended last."""
        self._seen = (0, 0)
        self._exports: list[int] = []
        self._series: dict[str, dict[tuple[Any, ...], _Series]] = {}
        self._spanned: dict[str, Phase] = {}

    def take(self, capture: Capture) -> None:
        """Take in what was captured since the last time."""
        points, spans = self._seen
        for point in capture.all_points[points:]:
            self._point(point)
        for span in sorted(capture.all_spans[spans:], key=lambda span: span.end_ns):
            self._span(span)
        self._seen = len(capture.all_points), len(capture.all_spans)

    def metrics(self) -> list[str]:
        """The names of the metrics received, sorted."""
        return sorted(self._series)

    def value(self, metric: Metric, **match: str) -> float | None:
        """A gauge as the last export has it; None if that left it out. The sum, if several series match."""
        history = self.history(metric, **match)
        return history[-1] if history else None

    def history(self, metric: Metric, **match: str) -> list[float | None]:
        """A gauge at every export since its first: None where it was absent. Summed over the series that match."""
        matching = list(self._matching(metric, match))
        moments = [moment for series in matching for moment in series.values]
        if not moments:
            return []
        return [
            sum(values) if (values := [one.values[moment] for one in matching if moment in one.values]) else None
            for moment in self._exports
            if moment >= min(moments)
        ]

    def total(self, metric: Metric, **match: str) -> float | None:
        """A counter, or the sum of a histogram, over all series that match; None if there is none."""
        totals = [next(reversed(series.values.values())) for series in self._matching(metric, match)]
        return sum(totals) if totals else None

    def totals(self, metric: Metric, by: Attribute) -> dict[str, float]:
        """A counter by one of its attributes, without what is 0."""
        found: dict[str, float] = {}
        for series in self._matching(metric, {}):
            name = str(series.attributes.get(by.name, ""))
            found[name] = found.get(name, 0.0) + next(reversed(series.values.values()))
        return {name: total for name, total in found.items() if total}

    def open_now(self) -> dict[str, float]:
        """The phases that were open at the last export, and for how many seconds."""
        names = {str(one.attributes[attr.PHASE_NAME.name]) for one in self._matching(m.PHASE_AGE, {})}
        ages = {name: self.value(m.PHASE_AGE, **{attr.PHASE_NAME.name: name}) for name in names}
        return {name: age for name, age in sorted(ages.items()) if age is not None}

    def phases(self) -> list[Phase]:
        """The phases that took time, in the order of a loop; idle time is the last."""
        time = self.totals(m.PHASE_TIME, attr.PHASE_NAME)
        whole = sum(time.values())
        names = [name for name in [*self._spanned, *time] if name != LOOP]
        phases = []
        for name in sorted(dict.fromkeys(names), key=lambda name: _LAST.index(name) if name in _LAST else -1):
            seen = self._spanned.get(name, Phase(name))
            share = time.get(name, 0.0) / whole if whole else None
            phases.append(Phase(name, share, seen.seconds, seen.errors))
        return phases

    def loop(self) -> Phase:
        """The whole iterations."""
        return self._spanned.get(LOOP, Phase(LOOP))

    def _point(self, point: Point) -> None:
        self.points += 1
        if not self.identity:
            known = {one.name for one in attr.IDENTITY}
            self.identity = {key: value for key, value in point.attributes.items() if key in known}
        if not self._exports or point.time_ns > self._exports[-1]:
            self._exports.append(point.time_ns)
        key = tuple(sorted((name, str(value)) for name, value in point.attributes.items()))
        series = self._series.setdefault(point.name, {}).setdefault(key, _Series(point.attributes))
        value = point.sum if point.kind == "histogram" else point.value
        if value is not None:
            so_far = next(reversed(series.values.values()), 0.0) if point.temporality == "delta" else 0.0
            series.values[self._exports[-1]] = so_far + value

    def _span(self, span: SpanRecord) -> None:
        self.spans += 1
        self.traces.add(span.trace_id)
        name = _WORDS.get(span.name) or str(span.attributes.get(attr.PHASE_NAME.name, span.name))
        iteration = span.attributes.get(attr.LOOP_ITERATION.name)
        if name == LOOP and isinstance(iteration, int):
            self.iteration = iteration
        phase = self._spanned.setdefault(name, Phase(name))
        phase.seconds.append((span.end_ns - span.start_ns) / 1e9)
        if span.status_code == "error":
            phase.errors.append(str(span.attributes.get(attr.ERROR_TYPE.name, "error")))

    def _matching(self, metric: Metric, match: dict[str, str]) -> Iterator[_Series]:
        for series in self._series.get(metric.name, {}).values():
            if all(series.attributes.get(name) == value for name, value in match.items()):
                yield series
