"""Whether telemetry keeps to the semantic model, whoever emitted it.

What is judged: metrics and spans named `rl.*` or `rlotel.*`, and the `hw.*` metrics of the model. A `hw.*` point
that carries no `rl.*` attribute is another program's, so only its unit, instrument and value are judged. All else
passes.

An attribute is undeclared if its key is `rl.*` or `rlotel.*`, or one the model defines (`error.type`, `hw.*`), and
the metric or span does not list it. Other keys pass: collectors add such as `k8s.pod.name` to all points.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from rlotel import otlp_json, semconv
from rlotel.otlp_records import flatten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlotel.otlp_json import ExportRequest
    from rlotel.otlp_records import Attributes, Point, SpanRecord, Value

Kind = Literal[
    "unreadable",
    "unknown_name",
    "wrong_unit",
    "wrong_instrument",
    "missing_attribute",
    "undeclared_attribute",
    "unlisted_value",
    "not_finite",
]

_OURS = ("rl.", "rlotel.")
_NAMES = frozenset([*semconv.metrics.BY_NAME, *semconv.spans.BY_NAME])
_IDENTITY = frozenset(attribute.name for attribute in semconv.attributes.IDENTITY)


@dataclass(frozen=True)
class Violation:
    """One way in which telemetry breaks the model, with how often it does."""

    kind: Kind
    name: str
    """The metric or span; empty for a line that could not be read."""
    detail: str
    """What is wrong and what it should be."""
    line: int
    """Where it was first seen, from 1."""
    count: int = 1
    """In how many points or spans."""


@dataclass(frozen=True)
class Verdict:
    """What became of captured telemetry before the model."""

    violations: list[Violation]
    """In the order of the lines."""
    judged: int
    """The points and spans that the model has a say in."""
    seen: int
    """All points and spans."""


def check(lines: Iterable[str]) -> list[Violation]:
    """Every way in which the telemetry breaks the model; `lines` as for `judge`."""
    return judge(lines).violations


def judge(lines: Iterable[str]) -> Verdict:
    """Judge telemetry by the model.

    Args:
        lines: OTLP JSON, one export request a line as a capture or the Collector's file exporter writes it; or the
            lines of one JSON text with an export request, or an array of them, in it. Keys may be in snake case.
    """
    found: dict[tuple[str, str, str], Violation] = {}
    judged = seen = 0
    for line, text in _texts(lines):
        records: list[Point | SpanRecord] = []
        ways: list[_Found] = []
        try:
            requests = list(_requests(text))
        except ValueError as error:
            ways.append(("unreadable", "", str(error)))
        else:
            for points, spans in map(flatten, requests):
                records += [*points, *spans]
                ways += [way for point in points for way in _judge_point(point)]
                ways += [way for span in spans for way in _judge_span(span)]
        seen += len(records)
        judged += sum(record.name.startswith(_OURS) or record.name in _NAMES for record in records)
        for kind, name, detail in ways:
            known = found.get((kind, name, detail))
            one = Violation(kind, name, detail, line)
            found[kind, name, detail] = replace(known, count=known.count + 1) if known else one
    return Verdict(list(found.values()), judged, seen)


_Found = tuple[Kind, str, str]


def _texts(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The JSON texts with the line each begins at: one a line, or one over all lines."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    first = next(numbered, None)
    if first is None:
        return
    try:
        json.loads(first[1])
    except ValueError:
        rest = list(numbered)
        try:
            body = json.loads("\n".join(line for _, line in [first, *rest]))
        except ValueError:
            yield from [first, *rest]
        else:
            for one in body if isinstance(body, list) else [body]:
                yield first[0], json.dumps(one)
    else:
        yield first
        yield from numbered


def _requests(text: str) -> Iterator[ExportRequest]:
    """The export requests in one JSON object, which may hold several signals.

    Raises:
        ValueError: there is none in it.
    """
    signals = [signal for signal, key in otlp_json.KEYS.items() if key in text or _in_snake_case(key) in text]
    if not signals:
        json.loads(text)
        raise otlp_json.no_request()
    for signal in signals:
        yield otlp_json.from_text(text, otlp_json.REQUESTS[signal])


def _judge_point(point: Point) -> Iterator[_Found]:
    name = point.name
    metric = semconv.metrics.BY_NAME.get(name)
    if metric is None:
        if name.startswith(_OURS):
            yield "unknown_name", name, _unknown("metric", name, semconv.metrics.BY_NAME)
        return
    if point.unit != metric.unit:
        yield "wrong_unit", name, f"unit is {_quoted(point.unit)}, should be {_quoted(metric.unit)}"
    if point.kind != metric.instrument:
        yield "wrong_instrument", name, f"instrument is {point.kind}, should be {metric.instrument}"
    if any(number is not None and not math.isfinite(number) for number in (point.value, point.sum)):
        yield "not_finite", name, "has a value that is not finite; such a value should be left out"
    if not name.startswith(_OURS) and not any(key.startswith(_OURS) for key in point.attributes):
        return
    for attribute in semconv.attributes.REQUIRED_IDENTITY:
        if attribute.name not in point.attributes:
            yield "missing_attribute", name, f"{attribute.name} is missing; every point carries it"
    yield from _judge_attributes(name, metric.attributes, point.attributes)


def _judge_span(span: SpanRecord) -> Iterator[_Found]:
    known = semconv.spans.BY_NAME.get(span.name)
    if known is None:
        if span.name.startswith(_OURS):
            yield "unknown_name", span.name, _unknown("span", span.name, semconv.spans.BY_NAME)
        return
    for attribute in semconv.attributes.REQUIRED_IDENTITY:
        if attribute.name not in span.resource and attribute.name not in span.attributes:
            yield "missing_attribute", span.name, f"{attribute.name} is missing; its Resource carries it"
    yield from _judge_attributes(span.name, known.attributes, span.attributes)


def _judge_attributes(name: str, uses: tuple[semconv.Use, ...], attributes: Attributes) -> Iterator[_Found]:
    for use in uses:
        if use.requirement == "required" and use.attribute.name not in attributes:
            yield "missing_attribute", name, f"{use.attribute.name} is missing"
    declared = {use.attribute.name for use in uses} | _IDENTITY
    for key, value in attributes.items():
        known = semconv.attributes.BY_NAME.get(key)
        if key not in declared:
            if known is not None:
                yield "undeclared_attribute", name, f"{key} is not one of its attributes"
            elif key.startswith(_OURS):
                yield "undeclared_attribute", name, _unknown("attribute", key, semconv.attributes.BY_NAME)
        elif known is not None and known.closed and value not in known.members:
            yield "unlisted_value", name, f"{key} is {_shown(value)}, should be one of {', '.join(known.members)}"


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """The names most like one that is unknown, the likest first."""
    return difflib.get_close_matches(name, list(names), n=3, cutoff=0.75)


def _unknown(what: str, name: str, names: Iterable[str]) -> str:
    near = nearest(name, names)
    return f"the {what} {name} is not in the model" + (f"; did you mean {near[0]}?" if near else "")


def _in_snake_case(key: str) -> str:
    return re.sub("([A-Z])", r"_\1", key).lower()


def _quoted(unit: str) -> str:
    return f'"{unit}"'


def _shown(value: Value) -> str:
    return json.dumps(value, default=str)
