"""OTLP messages as flat records: one object a data point, one a span.

They carry their Resource and their scope with them, so that a test, a check or a view needs no nesting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as MetricMessage
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

    from rlotel.otlp_json import ExportRequest

Value: TypeAlias = "str | bool | int | float | bytes | list[Any] | dict[str, Any] | None"
Attributes: TypeAlias = "dict[str, Value]"
Kind = Literal["gauge", "counter", "updowncounter", "histogram", "summary"]

_TEMPORALITY = {1: "delta", 2: "cumulative"}
_SPAN_KIND = {1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}
_STATUS = {0: "unset", 1: "ok", 2: "error"}


@dataclass(frozen=True)
class Point:
    """One data point of a metric. Times are Unix nanoseconds."""

    name: str
    kind: Kind
    unit: str
    attributes: Attributes
    resource: Attributes
    scope: str
    value: float | None = None
    """Of a gauge or counter: an int or a float, as sent; None if the point says that nothing was recorded."""
    count: int | None = None
    sum: float | None = None
    bounds: tuple[float, ...] = ()
    """Upper bounds of a histogram's buckets; empty for an exponential histogram."""
    bucket_counts: tuple[int, ...] = ()
    """One longer than `bounds`: the last bucket is open."""
    start_ns: int = 0
    time_ns: int = 0
    temporality: str | None = None
    """`cumulative` or `delta`; None where it has no meaning."""

    @property
    def series(self) -> Hashable:
        """What is the same for all points of one time series."""
        identity = (self.name, self.kind, self.unit, self.scope)
        return (*identity, frozen(self.attributes), frozen(self.resource))


@dataclass(frozen=True)
class Event:
    """Something that happened at one moment of a span."""

    name: str
    time_ns: int
    attributes: Attributes


@dataclass(frozen=True)
class Link:
    """Another span that a span points to."""

    trace_id: str
    span_id: str
    attributes: Attributes


@dataclass(frozen=True)
class SpanRecord:
    """One finished span. Ids are lower-case hexadecimal, times Unix nanoseconds."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str | None
    start_ns: int
    end_ns: int
    attributes: Attributes
    resource: Attributes
    scope: str
    status_code: str
    """`unset`, `ok` or `error`."""
    status_message: str
    events: tuple[Event, ...]
    links: tuple[Link, ...]
    kind: str
    """`internal`, `server`, `client`, `producer`, `consumer` or `unspecified`."""


def flatten(request: ExportRequest) -> tuple[list[Point], list[SpanRecord]]:
    """The points and the spans of one export request, in its order; log records are neither."""
    points: list[Point] = []
    spans: list[SpanRecord] = []
    if isinstance(request, ExportMetricsServiceRequest):
        for resource_metrics in request.resource_metrics:
            resource = _attributes(resource_metrics.resource.attributes)
            for scope_metrics in resource_metrics.scope_metrics:
                for metric in scope_metrics.metrics:
                    points += _points(metric, resource, scope_metrics.scope.name)
    elif isinstance(request, ExportTraceServiceRequest):
        for resource_spans in request.resource_spans:
            resource = _attributes(resource_spans.resource.attributes)
            for scope_spans in resource_spans.scope_spans:
                spans += [_span(span, resource, scope_spans.scope.name) for span in scope_spans.spans]
    return points, spans


def frozen(value: Value) -> Hashable:
    """An attribute value, or a dict of them, as something that can be a key."""
    if isinstance(value, dict):
        return frozenset((key, frozen(child)) for key, child in value.items())
    if isinstance(value, list):
        return tuple(frozen(child) for child in value)
    # 1, 1.0 and True are equal in Python and three series in OpenTelemetry.
    return (type(value), value)


def _attributes(pairs: Iterable[KeyValue]) -> Attributes:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Value:
    which = value.WhichOneof("value")
    if which == "array_value":
        return [_value(child) for child in value.array_value.values]
    if which == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    found: Value = None if which is None else getattr(value, which)
    return found


def _points(metric: MetricMessage, resource: Attributes, scope: str) -> Iterator[Point]:
    form = metric.WhichOneof("data")
    if form is None:
        return
    data = getattr(metric, form)
    kind = _kind(metric)
    temporality = _TEMPORALITY.get(getattr(data, "aggregation_temporality", 0))
    for point in data.data_points:
        common: dict[str, Any] = {
            "name": metric.name,
            "kind": kind,
            "unit": metric.unit,
            "attributes": _attributes(point.attributes),
            "resource": resource,
            "scope": scope,
            "start_ns": point.start_time_unix_nano,
            "time_ns": point.time_unix_nano,
            "temporality": temporality,
        }
        if form in ("gauge", "sum"):
            which = point.WhichOneof("value")
            yield Point(**common, value=None if which is None else getattr(point, which))
            continue
        has_sum = form == "summary" or point.HasField("sum")
        if form == "histogram":
            common |= {"bounds": tuple(point.explicit_bounds), "bucket_counts": tuple(point.bucket_counts)}
        yield Point(**common, count=point.count, sum=point.sum if has_sum else None)


def _kind(metric: MetricMessage) -> Kind:
    form = metric.WhichOneof("data")
    if form == "sum":
        return "counter" if metric.sum.is_monotonic else "updowncounter"
    if form in ("gauge", "summary"):
        return form
    return "histogram"


def _span(span: SpanMessage, resource: Attributes, scope: str) -> SpanRecord:
    return SpanRecord(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() or None,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
        resource=resource,
        scope=scope,
        status_code=_STATUS.get(span.status.code, "unset"),
        status_message=span.status.message,
        events=tuple(Event(e.name, e.time_unix_nano, _attributes(e.attributes)) for e in span.events),
        links=tuple(
            Link(link.trace_id.hex(), link.span_id.hex(), _attributes(link.attributes)) for link in span.links
        ),
        kind=_SPAN_KIND.get(span.kind, "unspecified"),
    )
