"""A selection as PromQL, in the spelling of a backend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlotel.render import windows
from rlotel.render.neighbours import Neighbour
from rlotel.semconv import attributes as a
from rlotel.semconv import metrics as m

if TYPE_CHECKING:
    from rlotel.render.selection import Matcher, Selection
    from rlotel.render.spelling import Spelling
    from rlotel.semconv.types import Metric

RUN = a.RUN_ID.name
_QUANTILES = {"p50": "0.5", "p95": "0.95", "p99": "0.99"}
_ACROSS = {
    "last": "avg",
    "highest": "max",
    "age": "max",
    "lowest": "min",
    "total": "sum",
    "so_far": "sum",
    "state": "max",
}


@dataclass(frozen=True)
class Scope:
    """Everything about a query that is not its question: the backend's spelling, the time, and which runs."""

    spelling: Spelling
    window_s: int
    matchers: tuple[Matcher, ...] = ()
    """Put into every query on metrics of a run."""

    def over(self, window_s: int) -> Scope:
        """The same, looking back over another time."""
        return replace(self, window_s=window_s)


def query(selection: Selection, scope: Scope) -> str:
    """The PromQL of a selection. Its result is grouped by the selection's labels, and by nothing else."""
    return _Query(selection, scope).text()


def usual(selection: Selection, scope: Scope) -> str:
    """What is usual for a selection: its median over the scope's time; of a share, the share over that time."""
    if selection.statistic == "mean" and selection.metric.instrument == "histogram":
        return query(replace(selection, statistic="p50"), scope)
    if selection.metric.instrument == "histogram" or selection.statistic in ("share", "ratio"):
        return query(selection, scope)
    return _Query(selection, scope).over_time("avg", "quantile_over_time", "0.5, ")


def most_recent(selection: Selection, scope: Scope) -> str:
    """The most recent value of a gauge within the scope's time, though its series may have ended."""
    return _Query(selection, scope).over_time("max", "last_over_time")


class _Query:
    def __init__(self, selection: Selection, scope: Scope) -> None:
        self._selection = selection
        self._scope = scope
        self._metric = selection.metric
        self._range = f"[{windows.text(scope.window_s)}]"

    def text(self) -> str:
        statistic = self._selection.statistic
        if statistic in _ACROSS:
            level = self._across(_ACROSS[statistic], self._series(self._metric))
            return f"{level} == 1" if statistic == "state" else level
        if statistic in _QUANTILES:
            buckets = self._sum(self._moved(self._metric, "rate", "bucket"), *self._selection.by, "le")
            return f"histogram_quantile({_QUANTILES[statistic]}, {buckets})"
        return {
            "rate": self._rate,
            "worst_rate": self._worst_rate,
            "increase": self._increase,
            "mean": self._mean,
            "peak": self._peak,
            "share": self._share,
            "ratio": self._ratio,
            "failure_ratio": self._failure_ratio,
        }[statistic]()

    def over_time(self, across: str, function: str, argument: str = "") -> str:
        return self._across(across, f"{function}({argument}{self._series(self._metric)}{self._range})")

    def _rate(self) -> str:
        return self._sum(self._moved(self._metric, "rate"), *self._selection.by)

    def _worst_rate(self) -> str:
        return self._across("max", self._moved(self._metric, "rate"))

    def _increase(self) -> str:
        part = "count" if self._metric.instrument == "histogram" else ""
        return self._sum(self._moved(self._metric, "increase", part), *self._selection.by)

    def _mean(self) -> str:
        if self._metric.instrument != "histogram":
            return self.over_time("avg", "avg_over_time")
        by = self._selection.by
        total, count = (self._sum(self._moved(self._metric, "rate", part), *by) for part in ("sum", "count"))
        return f"{total} / {count}"

    def _peak(self) -> str:
        return self.over_time("max", "max_over_time")

    def _share(self) -> str:
        whole = self._selection.of or self._metric
        part = "sum" if self._metric.instrument == "histogram" else ""
        by = self._selection.by
        # The whole has not got the labels that tell its parts apart.
        whole_by = tuple(label for label in by if label == RUN)
        numerator = self._sum(self._moved(self._metric, "increase", part), *by)
        denominator = self._sum(self._moved(whole, "increase", part, where=()), *whole_by)
        if by == whole_by:
            return f"{numerator} / {denominator}"
        on = ", ".join(self._scope.spelling.label(label) for label in whole_by)
        return f"{numerator} / on ({on}) group_left () {denominator}"

    def _ratio(self) -> str:
        second = self._selection.of or self._metric
        by = self._selection.by
        if self._metric.instrument == "counter":
            over = [self._sum(self._moved(metric, "increase"), *by) for metric in (self._metric, second)]
        else:
            over = [self._sum(self._series(metric), *by) for metric in (self._metric, second)]
        return " / ".join(over)

    def _failure_ratio(self) -> str:
        # Failures are counted from a true 0. A duration with an error type never seen before is a new
        # series, whose first point Prometheus takes for no increase.
        phase = self._metric.name.split(".")[1]
        by = self._selection.by
        failed = self._moved(m.PHASE_FAILURES, "increase", where=((a.PHASE_NAME.name, "=", phase),))
        every = self._moved(self._metric, "increase", "count", where=())
        return f"{self._sum(failed, *by)} / {self._sum(every, *by)}"

    def _moved(
        self, metric: Metric, function: str, part: str = "", where: tuple[Matcher, ...] | None = None
    ) -> str:
        return f"{function}({self._series(metric, part, where)}{self._range})"

    def _series(self, metric: Metric, part: str = "", where: tuple[Matcher, ...] | None = None) -> str:
        spelling = self._scope.spelling
        chosen = self._selection.where if where is None else where
        if isinstance(metric, Neighbour):
            resource = () if metric.resource is None else (("monitored_resource", "=", metric.resource),)
            chosen = (*chosen, *resource)
        else:
            chosen = (*chosen, *self._scope.matchers)
        return spelling.selector(metric, [f"{spelling.label(k)}{op}{_quoted(v)}" for k, op, v in chosen], part)

    def _sum(self, vector: str, *by: str) -> str:
        return _aggregated("sum", vector, [self._scope.spelling.label(label) for label in by])

    def _across(self, function: str, vector: str) -> str:
        return _aggregated(function, vector, [self._scope.spelling.label(label) for label in self._selection.by])


def _aggregated(function: str, vector: str, by: list[str]) -> str:
    return f"{function} by ({', '.join(by)}) ({vector})" if by else f"{function}({vector})"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
