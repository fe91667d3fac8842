"""The closed set of statistics that panels and alerts may ask for, and what each needs and yields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlotel.render import units, windows

if TYPE_CHECKING:
    from rlotel.render.units import Unit
    from rlotel.semconv.types import Metric

_LEVELS = ("gauge", "updowncounter")


@dataclass(frozen=True)
class Statistic:
    """One statistic: which instruments have it, and how a title says it (`{window}` is the time it looks back)."""

    instruments: tuple[str, ...]
    suffix: str
    meaning: str


STATISTICS = {
    "last": Statistic(_LEVELS, "", "the last value; of several series the mean"),
    "highest": Statistic(_LEVELS, "highest", "the last value; of several series the highest"),
    "lowest": Statistic(_LEVELS, "lowest", "the last value; of several series the lowest"),
    "total": Statistic(_LEVELS, "", "the last value; several series are added up"),
    "state": Statistic(_LEVELS, "", "the series whose value is 1, where one series a state says which it is"),
    "age": Statistic(_LEVELS, "", "seconds that grow until something happens; of several series the highest"),
    "rate": Statistic(("counter",), "per second", "increase a second, over the window"),
    "worst_rate": Statistic(("counter",), "per second, highest", "the same; of several series the highest"),
    "increase": Statistic(
        ("counter", "histogram"), "in {window}", "increase over the window; of a histogram, events"
    ),
    "so_far": Statistic(
        ("counter",), "so far", "the count itself: for series that are born with their first event"
    ),
    "mean": Statistic((*_LEVELS, "histogram"), "mean", "the mean over the window"),
    "peak": Statistic(
        _LEVELS, "peak in {window}", "the highest value over the window, of several series the highest"
    ),
    "p50": Statistic(("histogram",), "p50", "the median over the window"),
    "p95": Statistic(("histogram",), "p95", "the 95th percentile over the window"),
    "p99": Statistic(("histogram",), "p99", "the 99th percentile over the window"),
    "share": Statistic(
        ("counter", "histogram"), "share", "what it added, of what the whole added, over the window"
    ),
    "ratio": Statistic((*_LEVELS, "counter"), "", "one metric over another; of counters, of their increases"),
    "failure_ratio": Statistic(("histogram",), "share that failed", "failures over all of them, over the window"),
}
"""All of them, by name."""


def unit(statistic: str, metric: Metric, of: Metric | None) -> Unit:
    """The unit of a statistic of a metric."""
    if statistic in ("share", "failure_ratio"):
        return units.SHARE
    if statistic == "ratio" and of is not None:
        return units.SHARE if metric.unit == of.unit else units.of("")
    if statistic in ("rate", "worst_rate"):
        return units.of("s/s" if metric.unit == "s" else f"{metric.unit or '1'}/s")
    if statistic == "increase" and metric.instrument == "histogram":
        return units.of("1")
    return units.of_metric(metric)


def suffix(statistic: str, metric: Metric, window_s: float) -> str:
    """What a title says about a statistic, if anything."""
    if statistic in ("rate", "worst_rate") and metric.unit == "s":
        return "share of the time" + (", highest" if statistic == "worst_rate" else "")
    return STATISTICS[statistic].suffix.format(window=windows.words(window_s))
