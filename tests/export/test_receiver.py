"""The embedded receiver, talked to by OpenTelemetry's own exporters and by bare clients over real sockets."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
    MetricExportResult,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from rlotel import capture, otlp_json
from rlotel.receiver import Receiver, Reply
from tests.export.messages import SOON, Send, both_protocols, gauge, one_of_each


def _exporters(receiver: Receiver, protocol: str, **options: Any) -> tuple[Any, Any]:
    """The SDK's exporters of metrics and of spans."""
    if protocol == "grpc":
        endpoint = receiver.grpc_endpoint
        return GrpcMetricExporter(endpoint, **options), GrpcSpanExporter(endpoint, **options)
    base = f"{receiver.http_endpoint}/v1/"
    return HttpMetricExporter(f"{base}metrics", **options), HttpSpanExporter(f"{base}traces", **options)


def _train(metric_exporter: Any, span_exporter: Any) -> None:
    """A very short training run under the SDK, all of it exported."""
    resource = Resource({"rl.run.id": "r1"})
    meters = MeterProvider([PeriodicExportingMetricReader(metric_exporter)], resource=resource)
    tracers = TracerProvider(resource=resource)
    tracers.add_span_processor(SimpleSpanProcessor(span_exporter))
    with tracers.get_tracer("t").start_as_current_span("rl.loop", attributes={"rl.loop.iteration": 3}):
        meters.get_meter("t").create_counter("rl.sample.tokens").add(81_000, {"rl.token.type": "prompt"})
    meters.shutdown()
    tracers.shutdown()


def _assert_trained(receiver: Receiver, protocol: str) -> None:
    assert receiver.wait_for(lambda c: c.points("rl.sample.tokens") and c.spans("rl.loop"), SOON)
    (point,), (span,) = receiver.capture.all_points, receiver.capture.all_spans
    assert (point.kind, point.value, point.attributes) == ("counter", 81_000, {"rl.token.type": "prompt"})
    assert span.attributes == {"rl.loop.iteration": 3}
    assert point.resource == span.resource == {"rl.run.id": "r1"}
    assert sorted((r.signal, r.protocol) for r in receiver.requests) == [
        ("metrics", protocol),
        ("traces", protocol),
    ]


@both_protocols
def test_what_the_sdk_exports_arrives(receiver: Receiver, protocol: str) -> None:
    _train(*_exporters(receiver, protocol))
    _assert_trained(receiver, protocol)


@pytest.mark.parametrize(
    ("protocol", "compression"),
    [
        ("http/protobuf", Compression.Gzip),
        ("http/protobuf", Compression.Deflate),
        ("grpc", grpc.Compression.Gzip),
        ("grpc", grpc.Compression.Deflate),
    ],
)
def test_compressed_exports_arrive(receiver: Receiver, protocol: str, compression: Any) -> None:
    _train(*_exporters(receiver, protocol, compression=compression))
    _assert_trained(receiver, protocol)
    if protocol != "grpc":  # gRPC unpacks before anyone sees it
        assert [r.headers["content-encoding"] for r in receiver.requests] == [compression.value] * 2


@both_protocols
def test_exports_over_tls_with_a_private_ca_arrive(
    tls_files: Any, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        # Where the machine sets one, `requests` takes it over the exporter's own certificate file.
        monkeypatch.delenv(name, raising=False)
    options = (
        {"credentials": grpc.ssl_channel_credentials(Path(tls_files.ca).read_bytes())}
        if protocol == "grpc"
        else {"certificate_file": tls_files.ca}
    )
    with Receiver(tls=(tls_files.cert, tls_files.key)) as receiver:
        assert receiver.http_endpoint.startswith("https://")
        assert receiver.grpc_endpoint.startswith("https://")
        _train(*_exporters(receiver, protocol, **options))
        _assert_trained(receiver, protocol)


@both_protocols
def test_all_three_signals_arrive_as_they_were_sent(send: Send, receiver: Receiver, protocol: str) -> None:
    for request in one_of_each():
        assert send(receiver, protocol, request, {"x-run": "R 1"}).code in (200, grpc.StatusCode.OK)
    assert [(r.signal, r.protocol, r.message) for r in receiver.requests] == [
        (otlp_json.signal_of(request), protocol, request) for request in one_of_each()
    ]
    assert [r.headers["x-run"] for r in receiver.requests] == ["R 1"] * 3


@both_protocols
def test_an_exporter_gets_through_after_an_outage(receiver: Receiver, protocol: str) -> None:
    receiver.reply = Reply(http_status=503)
    reader = InMemoryMetricReader()
    meters = MeterProvider([reader])
    meters.get_meter("t").create_counter("rl.train.steps").add(4)
    exporter, span_exporter = _exporters(receiver, protocol)
    with ThreadPoolExecutor(1) as pool:
        export = pool.submit(exporter.export, reader.get_metrics_data())
        assert receiver.wait_for(lambda _: receiver.refused, SOON)
        receiver.reply = Reply()
        assert export.result(SOON) is MetricExportResult.SUCCESS
    assert [(p.name, p.value) for p in receiver.capture.points()] == [("rl.train.steps", 4)]
    exporter.shutdown()
    span_exporter.shutdown()
    meters.shutdown()


def test_the_capture_file_holds_what_was_received(send: Send, tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    with Receiver(capture=path) as receiver:
        _train(*_exporters(receiver, "grpc"))
        receiver.reply = Reply(http_status=503)
        send(receiver, "http/protobuf", gauge("refused"))
        receiver.reply = Reply()
        for request in one_of_each():
            send(receiver, "http/protobuf", request)
        received, captured = receiver.requests, receiver.capture
    lines = path.read_text().splitlines()
    assert [otlp_json.from_line(line) for line in lines] == [request.message for request in received]
    assert [list(json.loads(line)) for line in lines[2:]] == [
        ["resourceMetrics"],
        ["resourceSpans"],
        ["resourceLogs"],
    ]
    assert capture.read(path) == captured
    assert (len(captured.all_points), len(captured.all_spans)) == (2, 2)


@both_protocols
def test_many_senders_lose_nothing(send: Send, receiver: Receiver, protocol: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: send(receiver, protocol, gauge(f"m{n}", n)), range(40)))
    assert {p.name: p.value for p in receiver.capture.points()} == {f"m{n}": n for n in range(40)}
    assert len(receiver.requests) == 40


@both_protocols
def test_large_requests_are_taken(send: Send, receiver: Receiver, protocol: str) -> None:
    request = gauge("n" * (8 << 20))  # twice gRPC's own limit
    assert send(receiver, protocol, request).code in (200, grpc.StatusCode.OK)
    assert receiver.requests[0].message == request


def test_waiting_ends_when_what_is_waited_for_has_come(send: Send, receiver: Receiver) -> None:
    looked = threading.Event()

    def has_both(captured: capture.Capture) -> bool:
        looked.set()
        return captured.names() == ["kl", "loss"]

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(receiver.wait_for, has_both, 60)
        assert looked.wait(SOON)
        send(receiver, "http/protobuf", gauge("loss"))
        send(receiver, "grpc", gauge("kl"))
        assert waiting.result(SOON) is True
    assert receiver.wait_for(has_both, 0)


def test_waiting_in_vain_ends_at_the_timeout(receiver: Receiver) -> None:
    assert receiver.wait_for(lambda captured: captured.points(), 0.05) is False


def test_clear_forgets(send: Send, receiver: Receiver) -> None:
    send(receiver, "http/protobuf", gauge("old"))
    receiver.clear()
    assert (receiver.requests, receiver.refused, receiver.capture) == ([], [], capture.Capture())
    send(receiver, "http/protobuf", gauge("new"))
    assert receiver.capture.names() == ["new"]


def test_a_snapshot_does_not_change(send: Send, receiver: Receiver) -> None:
    send(receiver, "http/protobuf", gauge())
    captured, received = receiver.capture, receiver.requests
    send(receiver, "http/protobuf", gauge())
    assert (len(captured.points()), len(received)) == (1, 1)
    assert (len(receiver.capture.points()), len(receiver.requests)) == (2, 2)
