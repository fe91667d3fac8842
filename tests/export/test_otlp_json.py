"""OTLP JSON: what is written is what the specification asks for, and it comes back as it was."""

import json
from collections.abc import MutableSequence
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from rlotel import otlp_json

REQUESTS = (ExportMetricsServiceRequest, ExportTraceServiceRequest, ExportLogsServiceRequest)
DEPTH = 8  # resource_metrics > scope_metrics > metrics > histogram > data_points > exemplars > attributes > value

_INTS = {
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_FIXED32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_SINT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.TYPE_FIXED64: (0, 2**64 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_SFIXED64: (-(2**63), 2**63 - 1),
}


def _scalars(field: Any) -> st.SearchStrategy[Any]:
    if field.type in _INTS:
        return st.integers(*_INTS[field.type])
    return {
        FieldDescriptor.TYPE_DOUBLE: st.floats(allow_nan=False) | st.just(float("nan")),
        FieldDescriptor.TYPE_STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        FieldDescriptor.TYPE_BYTES: st.binary(max_size=16),
        FieldDescriptor.TYPE_BOOL: st.booleans(),
        FieldDescriptor.TYPE_ENUM: st.integers(0, 30),  # known values and unknown ones
    }[field.type]


def _fill(draw: st.DrawFn, message: Message, depth: int) -> None:
    """Sets any fields of any OTLP message, whatever later releases of the protocol add to it."""
    chosen = {draw(st.sampled_from([*oneof.fields])).name for oneof in message.DESCRIPTOR.oneofs}
    for field in message.DESCRIPTOR.fields:
        if field.containing_oneof is not None and field.name not in chosen:
            continue
        # Left out now and then; seldom on the way down, or most requests would hold no point and no span.
        if not draw(st.integers(0, 15 if depth > 2 else 3)) or (field.message_type is not None and not depth):
            continue
        value = getattr(message, field.name)
        if isinstance(value, MutableSequence):
            size = draw(st.sampled_from((1, 2, 0)))
            if field.message_type is None:
                value.extend(draw(st.lists(_scalars(field), min_size=size, max_size=size)))
            else:
                for _ in range(size):
                    _fill(draw, value.add(), depth - 1)  # type: ignore[attr-defined]
        elif field.message_type is None:
            setattr(message, field.name, draw(_scalars(field)))
        else:
            value.SetInParent()
            _fill(draw, value, depth - 1)


@st.composite
def requests(draw: st.DrawFn) -> otlp_json.ExportRequest:
    request: otlp_json.ExportRequest = draw(st.sampled_from(REQUESTS))()
    _fill(draw, request, DEPTH)
    return request


@given(requests())
def test_every_request_comes_back_as_it_was(request: otlp_json.ExportRequest) -> None:
    line = otlp_json.to_line(request)
    back = otlp_json.from_line(line)
    assert type(back) is type(request)
    # Bytes, because a NaN is not equal to itself.
    assert back.SerializeToString(deterministic=True) == request.SerializeToString(deterministic=True)


@given(requests())
def test_a_request_is_one_line_of_strict_json(request: otlp_json.ExportRequest) -> None:
    line = otlp_json.to_line(request)
    assert line.splitlines() == [line]
    json.loads(line, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def test_a_trace_is_written_as_the_specification_says() -> None:
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.parent_span_id = b"\xab" * 16, b"\xcd" * 8, b"\xef" * 8
    span.name, span.start_time_unix_nano = "rl.sample", 1_700_000_000_000_000_001
    span.kind, span.status.code = SpanMessage.SPAN_KIND_INTERNAL, Status.STATUS_CODE_ERROR
    link = span.links.add(trace_id=b"\x01" * 16, span_id=b"\x02" * 8)
    link.attributes.add(key="traceId").value.bytes_value = b"\x03" * 6
    assert json.loads(otlp_json.to_line(request)) == {
        "resourceSpans": [
            {
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": "ab" * 16,
                                "spanId": "cd" * 8,
                                "parentSpanId": "ef" * 8,
                                "name": "rl.sample",
                                "kind": 1,
                                "startTimeUnixNano": "1700000000000000001",
                                "status": {"code": 2},
                                "links": [
                                    {
                                        "traceId": "01" * 16,
                                        "spanId": "02" * 8,
                                        "attributes": [{"key": "traceId", "value": {"bytesValue": "AwMDAwMD"}}],
                                    }
                                ],
                            }
                        ]
                    }
                ]
            }
        ]
    }


def test_a_metric_is_written_as_the_specification_says() -> None:
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="rl.sync.size", unit="By")
    metric.histogram.aggregation_temporality = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    point = metric.histogram.data_points.add(count=2**53 + 1, sum=float("inf"), explicit_bounds=[1.5])
    point.bucket_counts.extend([0, 2**53 + 1])
    point.exemplars.add(as_double=float("nan"), trace_id=b"\xab" * 16, span_id=b"\xcd" * 8)
    metrics = json.loads(otlp_json.to_line(request))["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    assert metrics == [
        {
            "name": "rl.sync.size",
            "unit": "By",
            "histogram": {
                "aggregationTemporality": 2,
                "dataPoints": [
                    {
                        "count": "9007199254740993",
                        "sum": "Infinity",
                        "explicitBounds": [1.5],
                        "bucketCounts": ["0", "9007199254740993"],
                        "exemplars": [{"asDouble": "NaN", "traceId": "ab" * 16, "spanId": "cd" * 8}],
                    }
                ],
            },
        }
    ]


@pytest.mark.parametrize(
    ("request_type", "line"),
    [
        (ExportMetricsServiceRequest, '{"resourceMetrics":[]}'),
        (ExportTraceServiceRequest, '{"resourceSpans":[]}'),
        (ExportLogsServiceRequest, '{"resourceLogs":[]}'),
    ],
)
def test_an_empty_request_still_says_what_it_is(request_type: type[otlp_json.ExportRequest], line: str) -> None:
    assert otlp_json.to_line(request_type()) == line
    assert otlp_json.from_line(line) == request_type()


def test_fields_of_a_later_protocol_are_left_out() -> None:
    span = {"traceId": "AB" * 16, "name": "rl.loop", "mood": {"traceId": "no hex"}, "kind": "SPAN_KIND_NEW"}
    line = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}], "v2": []}], "format": 2})
    expected = ExportTraceServiceRequest()
    expected.resource_spans.add().scope_spans.add().spans.add(trace_id=b"\xab" * 16, name="rl.loop")
    assert otlp_json.from_line(line) == expected


def test_integers_may_be_numbers_and_enumerations_names() -> None:
    span = {"startTimeUnixNano": 17, "kind": "SPAN_KIND_INTERNAL"}
    expected = ExportTraceServiceRequest()
    expected.resource_spans.add().scope_spans.add().spans.add(start_time_unix_nano=17, kind="SPAN_KIND_INTERNAL")
    line = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    assert otlp_json.from_line(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "",
        "no JSON",
        "[]",
        "17",
        "{}",
        '{"resourceProfiles":[]}',
        '{"resourceSpans":17}',
        '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"no hex"}]}]}]}',
        '{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"soon"}]}]}]}',
        '{"resourceSpans":[{"scopeSpa',
        "[" * 100_000,
        '{"resourceLogs":' * 100_000,
    ],
)
def test_what_is_no_otlp_json_is_a_value_error(line: str) -> None:
    with pytest.raises(ValueError):
        otlp_json.from_line(line)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda child: (
        st.lists(child, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["scopeMetrics", "metrics", "gauge", "dataPoints", "asInt", "exemplars", "traceId", "?"]
            ),
            child,
            max_size=4,
        )
    ),
)


@given(_JSON)
def test_any_json_is_a_request_or_a_value_error(body: Any) -> None:
    try:
        request = otlp_json.from_line(json.dumps({"resourceMetrics": body}))
    except ValueError:
        return
    assert isinstance(request, ExportMetricsServiceRequest)
