"""What is wrong with a query, judged by the model and by what Cloud Monitoring can run.

It parses the text that was rendered, whatever made it: names must be exact, functions must exist, windows must
hold at least two iterations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import promql_parser as promql

from rlotel.render import neighbours, selection, statistics, units, windows
from rlotel.render.windows import Windows
from rlotel.semconv import metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlotel.render.spelling import Spelling
    from rlotel.semconv.types import Metric

_ADDED = {"bucket", "sum", "count"}
_MOVING = {"rate", "increase"}
_LEVEL = {"avg_over_time", "max_over_time", "min_over_time", "quantile_over_time", "last_over_time"}
_FUNCTIONS = _MOVING | _LEVEL | {"histogram_quantile"}
"""Those of Prometheus 2.44 that we use. Later ones parse, and then Cloud Monitoring does not know them."""
_OF_QUERIES = {"monitored_resource", "__name__", "le"}
_VARIABLE = re.compile(r"\$\{[^}]*\}|\$\w+")

Name = tuple["Metric", str]


@dataclass
class _Findings:
    spelling: Spelling
    times: Windows
    names: dict[str, Name]
    metrics: list[Metric] = field(default_factory=list)
    parts: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    grouped_by: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def problems(text: str, spelling: Spelling, times: Windows) -> list[str]:
    """What is wrong with one query; nothing if it is well."""
    if not text.strip():
        return ["the query is empty"]
    try:
        tree = promql.parse(_VARIABLE.sub("x", text))
    except ValueError as error:
        return [f"it does not parse: {error}"]
    found = _Findings(spelling, times, names(spelling))
    _visit(tree, "", found)
    known = {spelling.label(label).strip('"') for metric in found.metrics for label in selection.labels(metric)}
    unknown = sorted(found.grouped_by - known - _OF_QUERIES)
    return found.problems + [f"it groups by {label}, which none of its metrics has" for label in unknown]


def names(spelling: Spelling) -> dict[str, Name]:
    """Every name that a query may use, with the metric and the part of a histogram that it is."""
    known: dict[str, Name] = {}
    for metric in (*metrics.ALL, *neighbours.by_name().values()):
        for part in ("bucket", "sum", "count") if metric.instrument == "histogram" else ("",):
            known[spelling.metric(metric, part)] = (metric, part)
    return known


def fitting_units(text: str, spelling: Spelling) -> set[str]:
    """The units, in UCUM, that the values of a query may have. The query must be well."""
    tree = promql.parse(_VARIABLE.sub("x", text))
    found = _Findings(spelling, Windows(), names(spelling))
    _visit(tree, "", found)
    metrics_of = set(found.metrics)
    first = found.metrics[0]
    divided = isinstance(tree, promql.BinaryExpr) and "/" in str(tree.op)
    if divided and (len(metrics_of) > 1 or not found.parts >= {"sum", "count"}):
        return {units.SHARE.ucum, "1"}
    if "rate" in found.functions and first.instrument == "counter":
        return {statistics.unit("rate", first, None).ucum}
    if found.parts == {"count"} or "increase" in found.functions:
        return {statistics.unit("increase", first, None).ucum}
    return {units.of_metric(first).ucum}


def _visit(node: promql.Expr, function: str, found: _Findings) -> None:
    if isinstance(node, promql.VectorSelector):
        _selector(node, function, found)
    elif isinstance(node, promql.MatrixSelector):
        _window(node.range.total_seconds(), found)
        _selector(node.vector_selector, function, found)
    elif isinstance(node, promql.Call):
        _call(node, found)
    else:
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            found.grouped_by |= set(node.modifier.labels)
        for child in _children(node):
            _visit(child, function, found)


def _children(node: promql.Expr) -> Iterator[promql.Expr]:
    for name in ("lhs", "rhs", "expr"):
        child = getattr(node, name, None)
        if child is not None:
            yield child


def _call(node: promql.Call, found: _Findings) -> None:
    name = node.func.name
    if name not in _FUNCTIONS:
        found.problems.append(f"the function {name} is not among {', '.join(sorted(_FUNCTIONS))}")
    for argument in node.args:
        _visit(argument, name, found)


def _window(seconds: float, found: _Findings) -> None:
    least = windows.WINDOW_LOOPS * found.times.loop_time_s
    if seconds < least:
        found.problems.append(
            f"a window of {windows.text(seconds)} holds less than {windows.WINDOW_LOOPS} iterations of "
            f"{windows.text(found.times.loop_time_s)}; look back at least {windows.text(least)}"
        )


def _selector(node: promql.VectorSelector, function: str, found: _Findings) -> None:
    matchers = node.matchers.matchers
    exact = [one.value for one in matchers if one.name == "__name__" and one.op == promql.MatchOp.Equal]
    name = node.name or (exact[0] if exact else "")
    if not name:
        found.problems.append("a selector does not say exactly which metric")
        return
    if name not in found.names:
        found.problems.append(_unknown(name, found))
        return
    metric, part = found.names[name]
    found.metrics.append(metric)
    found.parts.add(part)
    found.functions.add(function)
    known = {found.spelling.label(label).strip('"') for label in selection.labels(metric)} | _OF_QUERIES
    found.problems += [f"{name} has no label {one.name}" for one in matchers if one.name not in known]
    moving = metric.instrument == "counter" or bool(part)
    if function in _MOVING and not moving:
        found.problems.append(f"{function} of {name}, which is a {metric.instrument}")
    if function in _LEVEL and moving:
        found.problems.append(f"{function} of {name}, which only grows; take its rate or increase")
    if part and function not in _MOVING:
        found.problems.append(f"{name} only grows; take its rate or increase")


def _unknown(name: str, found: _Findings) -> str:
    stem, _, part = name.rpartition("_")
    same = [known for known, (metric, _) in found.names.items() if metric.name in (name, stem)]
    if part in _ADDED and stem in found.names:
        return f"{name}: {stem} is a {found.names[stem][0].instrument} and has no {part}"
    if same:
        return f"{name} is spelled {' or '.join(same)} here"
    return f"{name} is no metric of the model"
