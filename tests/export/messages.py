"""What the tests of the receiver share: requests to send it, and how long an arrival may take."""

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from rlotel import otlp_json

Send = Callable[..., Any]
"""The fixture: one request without retries, and its Answer."""
SOON = 20.0
"""Seconds: what "it arrives" may take on a busy machine."""

both_protocols = pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])


def gauge(name: str = "loss", value: float = 0.5) -> ExportMetricsServiceRequest:
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name=name)
    metric.gauge.data_points.add(as_double=value)
    return request


def span() -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(name="rl.loop", trace_id=b"\xab" * 16)
    return request


def one_of_each() -> list[otlp_json.ExportRequest]:
    logs = ExportLogsServiceRequest()
    logs.resource_logs.add().scope_logs.add().log_records.add().body.string_value = "é"
    return [gauge(), span(), logs]
