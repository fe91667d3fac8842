"""What a panel or an alert asks: a metric of the model, a statistic, which of its points, and by what.

Everything is checked against the model here, so that an unknown name, or a statistic that the instrument has not
got, is an error of the source, long before any backend sees a query.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlotel.conformance import nearest
from rlotel.render import neighbours
from rlotel.render.neighbours import Neighbour
from rlotel.render.source import SourceError
from rlotel.render.statistics import STATISTICS
from rlotel.semconv import attributes, metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlotel.semconv.types import Metric

_COUNTED = sorted(zero[attributes.PHASE_NAME.name] for zero in metrics.PHASE_FAILURES.zeros)

KEYS = {"metric", "statistic", "of", "where", "by"}
"""The keys of a source that make a selection."""

TARGET = ("instance", "job", "namespace", "cluster", "location")
"""What Prometheus and Cloud Monitoring say about whoever sent a series."""

Matcher = tuple[str, str, str]
"""A label, an operator of PromQL, a value."""


@dataclass(frozen=True)
class Selection:
    """One question to a backend."""

    metric: Metric
    statistic: str
    of: Metric | None = None
    """The whole of a share, or the second metric of a ratio."""
    where: tuple[Matcher, ...] = ()
    by: tuple[str, ...] = field(default=())


def selection(entry: Mapping[str, Any], where: str) -> Selection:
    """A selection from its source.

    Args:
        entry: `metric` and `statistic`, and if wanted `of`, `where` and `by`.
        where: the place in the sources, for messages.

    Raises:
        SourceError: it does not fit the model.
    """
    if "metric" not in entry:
        raise SourceError(f"{where}: say which metric")
    metric = find(entry["metric"], where)
    statistic = entry.get("statistic", "last")
    if statistic not in STATISTICS:
        raise SourceError(f"{where}: no statistic {statistic!r}; there are {', '.join(STATISTICS)}")
    if metric.instrument not in STATISTICS[statistic].instruments:
        fitting = ", ".join(name for name, known in STATISTICS.items() if metric.instrument in known.instruments)
        raise SourceError(
            f"{where}: {metric.name} is a {metric.instrument}, without {statistic}; it has {fitting}"
        )
    of = find(entry["of"], where) if "of" in entry else None
    if (of is None) != (statistic not in ("share", "ratio")):
        raise SourceError(f"{where}: `of` goes with share and ratio, and only with them")
    if of is not None and of.instrument != metric.instrument:
        raise SourceError(f"{where}: {metric.name} is a {metric.instrument} and {of.name} a {of.instrument}")
    if statistic == "failure_ratio" and not any(metric.name == f"rl.{phase}.duration" for phase in _COUNTED):
        raise SourceError(f"{where}: failures are counted for {', '.join(_COUNTED)}, and not for {metric.name}")
    if statistic == "age" and metric.unit != "s":
        raise SourceError(f"{where}: {metric.name} is no age, its unit is {metric.unit}")
    by = tuple(entry.get("by", ()))
    matchers = tuple(_matcher(label, value, where) for label, value in entry.get("where", {}).items())
    for label in (*by, *(label for label, _, _ in matchers)):
        _check_label(metric, label, where)
    return Selection(metric, statistic, of, matchers, by)


def find(name: str, where: str) -> Metric:
    """The metric of the model, or of a neighbour, with this name.

    Raises:
        SourceError: there is none; the message names similar ones.
    """
    known: dict[str, Metric] = {**metrics.BY_NAME, **neighbours.by_name()}
    if name not in known:
        near = nearest(name, dict.fromkeys(known))
        hint = f"did you mean {', '.join(near)}?" if near else "`rlotel semconv list` lists what there is."
        raise SourceError(f"{where}: {name} is no metric of the model; {hint}")
    return known[name]


def labels(metric: Metric) -> tuple[str, ...]:
    """All labels that the points of a metric may carry."""
    if isinstance(metric, Neighbour):
        return metric.labels
    own = tuple(use.attribute.name for use in metric.attributes)
    return (*(attribute.name for attribute in attributes.IDENTITY), *own, *TARGET)


def _check_label(metric: Metric, label: str, where: str) -> None:
    if label not in labels(metric):
        raise SourceError(f"{where}: {metric.name} has no label {label}; it has {', '.join(labels(metric))}")


def _matcher(label: str, value: Any, where: str) -> Matcher:
    operator = "="
    if isinstance(value, dict):
        if set(value) != {"not"}:
            raise SourceError(f"{where}: {label}: a value, a list of values, or {{not: …}}")
        operator, value = "!=", value["not"]
    if isinstance(value, list):
        operator = "=~" if operator == "=" else "!~"
        value = "|".join(value)
    return label, operator, str(value).lower() if isinstance(value, bool) else str(value)
