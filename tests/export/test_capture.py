"""Captures: what the SDK sends, found again as flat points and spans."""

from collections.abc import Callable
from pathlib import Path

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.metrics import Meter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from rlotel import otlp_json
from rlotel.capture import Capture, Point, SpanNode, flatten, read


def _metrics(record: Callable[[Meter], object], **resource: str) -> ExportMetricsServiceRequest:
    """What the SDK would send after `record`."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], resource=Resource(resource))
    record(provider.get_meter("test.scope"))
    data = reader.get_metrics_data()
    assert data is not None
    provider.shutdown()
    return encode_metrics(data)


def _spans(record: Callable[[trace.Tracer], object], **resource: str) -> ExportTraceServiceRequest:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource(resource), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    record(provider.get_tracer("test.scope"))
    return encode_spans(exporter.get_finished_spans())


def _read(*requests: otlp_json.ExportRequest) -> Capture:
    return read([otlp_json.to_line(request) for request in requests])


def _only(points: list[Point]) -> Point:
    (point,) = points
    return point


def test_every_instrument_becomes_points_of_its_kind() -> None:
    def record(meter: Meter) -> None:
        meter.create_counter("tokens", unit="{token}").add(3, {"kind": "prompt"})
        meter.create_up_down_counter("queue").add(-2)
        meter.create_gauge("loss", unit="1").set(0.25)
        histogram = meter.create_histogram("time", unit="s", explicit_bucket_boundaries_advisory=[1.0, 2.0])
        histogram.record(0.5)
        histogram.record(7.5)

    capture = _read(_metrics(record, run="r1"))
    assert capture.names() == ["loss", "queue", "time", "tokens"]
    tokens = _only(capture.points("tokens"))
    assert (tokens.kind, tokens.unit, tokens.value, tokens.temporality) == ("counter", "{token}", 3, "cumulative")
    assert (tokens.attributes, tokens.resource, tokens.scope) == ({"kind": "prompt"}, {"run": "r1"}, "test.scope")
    assert 0 < tokens.start_ns <= tokens.time_ns
    assert (tokens.count, tokens.sum, tokens.bounds, tokens.bucket_counts) == (None, None, (), ())
    queue = _only(capture.points("queue"))
    assert (queue.kind, queue.value) == ("updowncounter", -2)
    loss = _only(capture.points("loss"))
    assert (loss.kind, loss.value, loss.temporality) == ("gauge", 0.25, None)
    duration = _only(capture.points("time"))
    assert (duration.kind, duration.value, duration.count, duration.sum) == ("histogram", None, 2, 8.0)
    assert (duration.bounds, duration.bucket_counts) == ((1.0, 2.0), (1, 0, 1))


def test_a_value_keeps_its_wire_type() -> None:
    def record(meter: Meter) -> None:
        meter.create_gauge("whole").set(1)
        meter.create_gauge("real").set(1.0)

    capture = _read(_metrics(record))
    assert [type(_only(capture.points(name)).value) for name in ("whole", "real")] == [int, float]


def test_points_that_the_sdk_seldom_sends_are_not_lost() -> None:
    request = ExportMetricsServiceRequest()
    metrics = request.resource_metrics.add().scope_metrics.add().metrics
    exponential = metrics.add(name="exponential").exponential_histogram
    exponential.data_points.add(count=2, sum=3.0, scale=1).positive.bucket_counts.append(2)
    metrics.add(name="summary").summary.data_points.add(count=4, sum=5.0)
    metrics.add(name="gap").gauge.data_points.add(flags=1)
    metrics.add(name="no sum").histogram.data_points.add(count=1)
    metrics.add(name="no data")
    capture = _read(request)
    found = {p.name: (p.kind, p.value, p.count, p.sum, p.bucket_counts) for p in capture.points()}
    assert found == {
        "exponential": ("histogram", None, 2, 3.0, ()),
        "summary": ("summary", None, 4, 5.0, ()),
        "gap": ("gauge", None, None, None, ()),
        "no sum": ("histogram", None, 1, None, ()),
    }


def test_attributes_of_every_type_become_python_values() -> None:
    request = ExportTraceServiceRequest()
    attributes = request.resource_spans.add().scope_spans.add().spans.add(name="s").attributes
    attributes.add(key="text").value.string_value = "é"
    attributes.add(key="yes").value.bool_value = True
    attributes.add(key="whole").value.int_value = -(2**63)
    attributes.add(key="real").value.double_value = 0.5
    attributes.add(key="raw").value.bytes_value = b"\x00\xff"
    attributes.add(key="list").value.array_value.values.add().int_value = 1
    attributes.add(key="map").value.kvlist_value.values.add(key="k").value.string_value = "v"
    attributes.add(key="nothing")
    (span,) = _read(request).spans()
    assert span.attributes == {
        "text": "é",
        "yes": True,
        "whole": -(2**63),
        "real": 0.5,
        "raw": b"\x00\xff",
        "list": [1],
        "map": {"k": "v"},
        "nothing": None,
    }


def test_points_are_selected_by_name_and_attributes() -> None:
    def record(meter: Meter) -> None:
        gauge = meter.create_gauge("age")
        gauge.set(1, {"rl.phase.name": "data", "name": "a"})
        gauge.set(2, {"rl.phase.name": "value"})
        meter.create_gauge("other").set(3, {"rl.phase.name": "data"})

    capture = _read(_metrics(record))
    assert [p.value for p in capture.points("age", **{"rl.phase.name": "data"})] == [1]
    assert [p.value for p in capture.points("age", name="a")] == [1]
    assert sorted(str(p.value) for p in capture.points(**{"rl.phase.name": "data"})) == ["1", "3"]
    assert capture.points("age", **{"rl.phase.name": None}) == []
    assert capture.points("absent") == []


def test_latest_is_the_last_point_of_every_series() -> None:
    request = ExportMetricsServiceRequest()
    for rank in ("0", "1"):
        resource_metrics = request.resource_metrics.add()
        resource_metrics.resource.attributes.add(key="rank").value.string_value = rank
        gauge = resource_metrics.scope_metrics.add().metrics.add(name="loss").gauge
        # The last by time arrives first, as it may after a retry.
        gauge.data_points.add(time_unix_nano=20, as_double=2.0)
        gauge.data_points.add(time_unix_nano=10, as_double=1.0)
        as_integer = gauge.data_points.add(time_unix_nano=10, as_double=3.0)
        as_integer.attributes.add(key="k").value.int_value = 1
        as_boolean = gauge.data_points.add(time_unix_nano=10, as_double=4.0)
        as_boolean.attributes.add(key="k").value.bool_value = True
    assert [(p.resource["rank"], p.value) for p in _read(request).latest("loss")] == [
        ("0", 2.0),
        ("0", 3.0),
        ("0", 4.0),
        ("1", 2.0),
        ("1", 3.0),
        ("1", 4.0),
    ]


def test_a_span_is_found_with_all_it_says() -> None:
    trace_id, span_id = 0xABCDEF, 0x123
    host = trace.SpanContext(trace_id, span_id, is_remote=True)

    def record(tracer: trace.Tracer) -> None:
        span = tracer.start_span(
            "rl.loop",
            kind=SpanKind.CLIENT,
            attributes={"rl.loop.iteration": 7},
            links=[Link(host, {"why": "host"})],
        )
        span.add_event("sync", {"n": 1}, timestamp=17)
        span.set_status(Status(StatusCode.ERROR, "out of memory"))
        span.end()

    (span,) = _read(_spans(record, run="r1")).spans("rl.loop", **{"rl.loop.iteration": 7})
    assert (span.kind, span.status_code, span.status_message) == ("client", "error", "out of memory")
    assert (span.parent_id, span.resource, span.scope) == (None, {"run": "r1"}, "test.scope")
    assert (len(span.trace_id), len(span.span_id)) == (32, 16)
    assert 0 < span.start_ns <= span.end_ns
    assert [(e.name, e.time_ns, e.attributes) for e in span.events] == [("sync", 17, {"n": 1})]
    links = [(link.trace_id, link.span_id, link.attributes) for link in span.links]
    assert links == [(f"{trace_id:032x}", f"{span_id:016x}", {"why": "host"})]


def test_traces_are_trees() -> None:
    def record(tracer: trace.Tracer) -> None:
        for _ in range(2):
            with tracer.start_as_current_span("loop"):
                with tracer.start_as_current_span("sample"), tracer.start_as_current_span("reward"):
                    pass
                with tracer.start_as_current_span("train"):
                    pass

    request = _spans(record)
    trees = _read(request, request).traces()  # sent twice, as after a timeout
    shape: tuple[str, list[object]] = ("loop", [("sample", [("reward", [])]), ("train", [])])
    assert [[_shape(root) for root in roots] for roots in trees.values()] == [[shape], [shape]]


def test_a_span_whose_parent_was_not_captured_is_a_root() -> None:
    remote = trace.SpanContext(1, 2, is_remote=True, trace_flags=trace.TraceFlags(1))
    context = trace.set_span_in_context(trace.NonRecordingSpan(remote))
    trees = _read(_spans(lambda tracer: tracer.start_span("orphan", context).end())).traces()
    assert {trace_id: [_shape(root) for root in roots] for trace_id, roots in trees.items()} == {
        f"{1:032x}": [("orphan", [])]
    }


def _shape(node: SpanNode) -> tuple[str, list[object]]:
    return node.span.name, [_shape(child) for child in node.children]


def test_resources_are_listed_once_in_order() -> None:
    def loss(meter: Meter) -> None:
        meter.create_gauge("loss").set(1)

    first, second = _metrics(loss, rank="1"), _metrics(loss, rank="0")
    spans = _spans(lambda tracer: tracer.start_span("s").end(), role="driver")
    assert _read(first, second, first, spans).resources() == [{"rank": "1"}, {"rank": "0"}, {"role": "driver"}]


def test_logs_and_empty_lines_are_no_telemetry_and_no_damage() -> None:
    assert read([otlp_json.to_line(ExportLogsServiceRequest()), "\n", ""]) == Capture()


def test_half_a_line_costs_only_itself(tmp_path: Path) -> None:
    request = _metrics(lambda meter: meter.create_gauge("loss").set(1))
    line = otlp_json.to_line(request)
    path = tmp_path / "capture.jsonl"
    path.write_text(f"{line[:40]}\n{line}\n{line[:60]}")
    points, spans = flatten(request)
    assert read(path) == Capture(tuple(points), tuple(spans), unreadable=2)
