"""The metric and the span that the doctor sends: true to the model, and easy to tell from a run's."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TypeAlias

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from rlotel.otlp_variables import Signal
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.transports import Request
from rlotel.version import __version__

SERVICE = "rlotel-doctor"
SPAN = "rlotel doctor"

Plain: TypeAlias = "str | bool | int | float"
"""A value that a Resource is shown and sent with here."""


def message(signal: Signal, resource: Mapping[str, Plain]) -> Request:
    """A request with one point or one span, on the Resource that a run would have but for its names."""
    own = {"service.name": SERVICE, attr.RUN_ID.name: SERVICE, attr.SYSTEM.name: "rlotel"}
    on = Resource(attributes=_pairs({**resource, **own}))
    now = time.time_ns()
    if signal == "metrics":
        # A counter at its true zero: a backend learns of a series, no dashboard of an event.
        metrics = ExportMetricsServiceRequest()
        scope = metrics.resource_metrics.add(resource=on).scope_metrics.add()
        scope.scope.name, scope.scope.version = "rlotel", __version__
        sent = m.RLOTEL_EXPORT_FAILURES
        metric = scope.metrics.add(name=sent.name, unit=sent.unit, description=sent.brief)
        metric.sum.is_monotonic = True
        metric.sum.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
        labels = {attr.RUN_ID.name: SERVICE, attr.SYSTEM.name: "rlotel", attr.RLOTEL_EXPORT_SIGNAL.name: "metrics"}
        metric.sum.data_points.add(
            attributes=_pairs(labels), start_time_unix_nano=now - 1_000_000, time_unix_nano=now, as_double=0.0
        )
        return metrics
    traces = ExportTraceServiceRequest()
    spans = traces.resource_spans.add(resource=on).scope_spans.add()
    spans.scope.name, spans.scope.version = "rlotel", __version__
    spans.spans.add(
        trace_id=os.urandom(16),
        span_id=os.urandom(8),
        name=SPAN,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=now - 1_000_000,
        end_time_unix_nano=now,
    )
    return traces


def _pairs(attributes: Mapping[str, Plain]) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in attributes.items()]


def _value(value: Plain) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(string_value=value)
