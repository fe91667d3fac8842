"""The embedded receiver, talked to by OpenTelemetry's own exporters and by bare clients over real sockets."""

import gzip
import json
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
import requests
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
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

PROTOBUF = {"Content-Type": "application/x-protobuf"}
STUBS: dict[str, Callable[[grpc.Channel], Any]] = {
    "metrics": MetricsServiceStub,
    "traces": TraceServiceStub,
    "logs": LogsServiceStub,
}
SOON = 20.0  # seconds: what "it arrives" may take on a busy machine
both_protocols = pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])


class Answer(NamedTuple):
    """What a bare client was told: an HTTP status or a gRPC code, and the body or the details."""

    code: Any
    text: str
    headers: Mapping[str, str] = {}


def _send(
    receiver: Receiver,
    protocol: str,
    request: otlp_json.ExportRequest,
    headers: Mapping[str, str] | None = None,
    timeout: float = SOON,
) -> Answer:
    """One request without retries."""
    signal = otlp_json.signal_of(request)
    if protocol == "grpc":
        with grpc.insecure_channel(receiver.grpc_endpoint.removeprefix("http://")) as channel:
            try:
                response = STUBS[signal](channel).Export(
                    request, timeout=timeout, metadata=tuple((headers or {}).items())
                )
            except grpc.RpcError as error:
                return Answer(error.code(), error.details() or "")
            return Answer(grpc.StatusCode.OK, str(response))
    response = requests.post(
        f"{receiver.http_endpoint}/v1/{signal}",
        request.SerializeToString(),
        headers={**PROTOBUF, **(headers or {})},
        timeout=timeout,
    )
    return Answer(response.status_code, response.text, response.headers)


def _gauge(name: str = "loss", value: float = 0.5) -> ExportMetricsServiceRequest:
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name=name)
    metric.gauge.data_points.add(as_double=value)
    return request


def _one_of_each() -> list[otlp_json.ExportRequest]:
    spans, logs = ExportTraceServiceRequest(), ExportLogsServiceRequest()
    spans.resource_spans.add().scope_spans.add().spans.add(name="rl.loop", trace_id=b"\xab" * 16)
    logs.resource_logs.add().scope_logs.add().log_records.add().body.string_value = "é"
    return [_gauge(), spans, logs]


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


def test_tls_lets_in_nobody_who_does_not_speak_it_or_trust_it(tls_files: Any) -> None:
    with Receiver(tls=(tls_files.cert, tls_files.key)) as receiver:
        # A client that says nothing must not keep the others from their handshake.
        with socket.create_connection(("127.0.0.1", receiver.http_port)):
            with pytest.raises(requests.exceptions.SSLError):
                requests.post(f"{receiver.http_endpoint}/v1/metrics", b"", timeout=SOON)
            with pytest.raises(requests.exceptions.ConnectionError):
                requests.post(f"http://127.0.0.1:{receiver.http_port}/v1/metrics", b"", timeout=SOON)
        address = f"127.0.0.1:{receiver.grpc_port}"
        for channel in (
            grpc.insecure_channel(address),
            grpc.secure_channel(address, grpc.ssl_channel_credentials()),
        ):
            with channel, pytest.raises(grpc.RpcError) as refusal:
                MetricsServiceStub(channel).Export(_gauge(), timeout=SOON)  # type: ignore[no-untyped-call]
            assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
        assert (receiver.requests, receiver.refused) == ([], [])


@both_protocols
def test_all_three_signals_arrive_as_they_were_sent(receiver: Receiver, protocol: str) -> None:
    for request in _one_of_each():
        assert _send(receiver, protocol, request, {"x-run": "R 1"}).code in (200, grpc.StatusCode.OK)
    assert [(r.signal, r.protocol, r.message) for r in receiver.requests] == [
        (otlp_json.signal_of(request), protocol, request) for request in _one_of_each()
    ]
    assert [r.headers["x-run"] for r in receiver.requests] == ["R 1"] * 3


def test_json_over_http_arrives_and_is_answered_in_json(receiver: Receiver) -> None:
    receiver.reply = Reply(rejected=2, message="two too many")
    answers = [
        requests.post(
            f"{receiver.http_endpoint}/v1/{otlp_json.signal_of(request)}",
            otlp_json.to_line(request),
            headers={"Content-Type": "application/json; charset=utf-8"},
            timeout=SOON,
        )
        for request in _one_of_each()
    ]
    assert [(r.protocol, r.message) for r in receiver.requests] == [("http/json", r) for r in _one_of_each()]
    assert [(a.status_code, a.headers["Content-Type"]) for a in answers] == [(200, "application/json")] * 3
    assert [a.json()["partialSuccess"] for a in answers] == [
        {"rejectedDataPoints": "2", "errorMessage": "two too many"},
        {"rejectedSpans": "2", "errorMessage": "two too many"},
        {"rejectedLogRecords": "2", "errorMessage": "two too many"},
    ]


@both_protocols
def test_a_plain_success_has_an_empty_answer(receiver: Receiver, protocol: str) -> None:
    assert [_send(receiver, protocol, request).text for request in _one_of_each()] == ["", "", ""]


@both_protocols
def test_a_required_header_must_be_there_and_right(protocol: str) -> None:
    with Receiver(require_headers={"Authorization": "Bearer s3cret"}) as receiver:
        answers = [
            _send(receiver, protocol, _gauge(), headers)
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Bearer s3cret"})
        ]
        no, yes = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.OK) if protocol == "grpc" else (401, 200)
        assert [answer.code for answer in answers] == [no, no, yes]
        assert answers[0].text == "header authorization is missing or wrong"
        assert (len(receiver.requests), len(receiver.refused)) == (1, 2)


BAD = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.UNIMPLEMENTED,
    418: grpc.StatusCode.UNKNOWN,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
}


@both_protocols
@pytest.mark.parametrize("status", BAD)
def test_it_answers_badly_on_demand(receiver: Receiver, protocol: str, status: int) -> None:
    receiver.reply = Reply(http_status=status, message="says who?")
    answer = _send(receiver, protocol, _gauge())
    assert (answer.code, answer.text) == (BAD[status] if protocol == "grpc" else status, "says who?")
    assert [(r.signal, r.message) for r in receiver.refused] == [("metrics", _gauge())]
    assert (receiver.requests, receiver.capture) == ([], capture.Capture())
    receiver.reply = Reply()
    assert _send(receiver, protocol, _gauge()).code in (200, grpc.StatusCode.OK)
    assert [p.name for p in receiver.capture.points()] == ["loss"]


def test_the_two_protocols_may_be_answered_differently(receiver: Receiver) -> None:
    receiver.reply = Reply(grpc_status=grpc.StatusCode.DEADLINE_EXCEEDED, message="too late")
    assert _send(receiver, "grpc", _gauge())[:2] == (grpc.StatusCode.DEADLINE_EXCEEDED, "too late")
    assert _send(receiver, "http/protobuf", _gauge()).code == 200
    assert [r.protocol for r in receiver.refused + receiver.requests] == ["grpc", "http/protobuf"]


def test_a_busy_answer_says_when_to_come_back(receiver: Receiver) -> None:
    receiver.reply = Reply(http_status=429, retry_after=7)
    assert _send(receiver, "http/protobuf", _gauge()).headers["Retry-After"] == "7"
    receiver.reply = Reply(http_status=429)
    assert "Retry-After" not in _send(receiver, "http/protobuf", _gauge()).headers


@both_protocols
def test_a_partial_success_is_taken_and_says_what_was_not(receiver: Receiver, protocol: str) -> None:
    receiver.reply = Reply(rejected=3, message="too old")
    answer = _send(receiver, protocol, _gauge())
    said = ExportMetricsServiceResponse()
    said.partial_success.rejected_data_points = 3
    said.partial_success.error_message = "too old"
    if protocol == "grpc":
        assert answer.text == str(said)
    else:
        assert ExportMetricsServiceResponse.FromString(answer.text.encode()) == said
    assert receiver.capture.names() == ["loss"]


@both_protocols
def test_a_late_answer_comes(receiver: Receiver, protocol: str) -> None:
    receiver.reply = Reply(delay=0.05)
    assert _send(receiver, protocol, _gauge()).code in (200, grpc.StatusCode.OK)


@both_protocols
@pytest.mark.parametrize(("reply", "taken"), [(Reply(delay=600), True), (Reply(silent=True), False)])
def test_a_client_may_give_up_before_the_answer(
    receiver: Receiver, protocol: str, reply: Reply, taken: bool
) -> None:
    receiver.reply = reply
    if protocol == "grpc":
        assert _send(receiver, protocol, _gauge(), timeout=0.5).code is grpc.StatusCode.DEADLINE_EXCEEDED
    else:
        with pytest.raises(requests.exceptions.ReadTimeout):
            _send(receiver, protocol, _gauge(), timeout=0.5)
    assert receiver.wait_for(lambda _: receiver.requests or receiver.refused, SOON)
    assert (len(receiver.requests), len(receiver.refused)) == ((1, 0) if taken else (0, 1))


@both_protocols
def test_it_closes_at_once_with_requests_in_flight(protocol: str) -> None:
    receiver = Receiver(reply=Reply(silent=True))
    with ThreadPoolExecutor(12) as pool:
        # More than a pool of the usual size would serve at a time.
        calls = [pool.submit(_send, receiver, protocol, _gauge(), timeout=60) for _ in range(12)]
        assert receiver.wait_for(lambda _: len(receiver.refused) == 12, SOON)
        before = time.monotonic()
        receiver.close()
        assert time.monotonic() - before < 5
        for call in calls:
            if protocol == "grpc":
                assert call.result(SOON).code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
            else:
                assert isinstance(call.exception(SOON), requests.exceptions.ConnectionError)
    receiver.close()


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


def test_waiting_ends_when_what_is_waited_for_has_come(receiver: Receiver) -> None:
    looked = threading.Event()

    def has_both(captured: capture.Capture) -> bool:
        looked.set()
        return captured.names() == ["kl", "loss"]

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(receiver.wait_for, has_both, 60)
        assert looked.wait(SOON)
        _send(receiver, "http/protobuf", _gauge("loss"))
        _send(receiver, "grpc", _gauge("kl"))
        assert waiting.result(SOON) is True
    assert receiver.wait_for(has_both, 0)


def test_waiting_in_vain_ends_at_the_timeout(receiver: Receiver) -> None:
    assert receiver.wait_for(lambda captured: captured.points(), 0.05) is False


def test_clear_forgets(receiver: Receiver) -> None:
    _send(receiver, "http/protobuf", _gauge("old"))
    receiver.clear()
    assert (receiver.requests, receiver.refused, receiver.capture) == ([], [], capture.Capture())
    _send(receiver, "http/protobuf", _gauge("new"))
    assert receiver.capture.names() == ["new"]


def test_a_snapshot_does_not_change(receiver: Receiver) -> None:
    _send(receiver, "http/protobuf", _gauge())
    captured, received = receiver.capture, receiver.requests
    _send(receiver, "http/protobuf", _gauge())
    assert (len(captured.points()), len(received)) == (1, 1)
    assert (len(receiver.capture.points()), len(receiver.requests)) == (2, 2)


def test_the_capture_file_holds_what_was_received(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    with Receiver(capture=path) as receiver:
        _train(*_exporters(receiver, "grpc"))
        receiver.reply = Reply(http_status=503)
        _send(receiver, "http/protobuf", _gauge("refused"))
        receiver.reply = Reply()
        for request in _one_of_each():
            _send(receiver, "http/protobuf", request)
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
def test_many_senders_lose_nothing(receiver: Receiver, protocol: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: _send(receiver, protocol, _gauge(f"m{n}", n)), range(40)))
    assert {p.name: p.value for p in receiver.capture.points()} == {f"m{n}": n for n in range(40)}
    assert len(receiver.requests) == 40


@both_protocols
def test_large_requests_are_taken(receiver: Receiver, protocol: str) -> None:
    request = _gauge("n" * (8 << 20))  # twice gRPC's own limit
    assert _send(receiver, protocol, request).code in (200, grpc.StatusCode.OK)
    assert receiver.requests[0].message == request


def _post(receiver: Receiver, body: bytes, path: str = "/v1/metrics", **headers: str) -> tuple[int, str]:
    headers = {**PROTOBUF, **{name.replace("_", "-"): value for name, value in headers.items()}}
    answer = requests.post(receiver.http_endpoint + path, body, headers=headers, timeout=SOON)
    return answer.status_code, answer.text


def test_what_is_no_otlp_over_http_is_told_so(receiver: Receiver) -> None:
    body = _gauge().SerializeToString()
    zipped = gzip.compress(body)
    bomb = zlib.compress(bytes(65 << 20))
    answers = [
        _post(receiver, body, "/v1/profiles"),
        _post(receiver, body, Content_Type="text/html"),
        _post(receiver, body[:-1]),
        _post(receiver, body, Content_Type="application/json"),
        _post(receiver, body, Content_Encoding="zstd"),
        _post(receiver, body, Content_Encoding="gzip"),
        _post(receiver, zipped[:-9], Content_Encoding="gzip"),
        _post(receiver, bomb, Content_Encoding="deflate"),
    ]
    assert [code for code, _ in answers] == [404, 415, 400, 400, 415, 400, 400, 413]
    assert answers[0][1] == "nothing at /v1/profiles; there is /v1/metrics, /v1/traces, /v1/logs"
    assert answers[4][1] == "Content-Encoding zstd is not known; use gzip or deflate"
    assert (receiver.requests, receiver.refused) == ([], [])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Transfer-Encoding: chunked", b"411"),
        ("Content-Length: many", b"411"),
        ("Content-Length: -1", b"413"),
        ("Content-Length: 99999999999", b"413"),
    ],
)
def test_a_request_of_unknown_or_absurd_size_is_told_so(receiver: Receiver, headers: str, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", receiver.http_port), SOON) as client:
        client.sendall(f"POST /v1/metrics HTTP/1.1\r\nHost: here\r\n{headers}\r\n\r\n".encode())
        answer = b"".join(iter(lambda: client.recv(4096), b""))  # to the end: the connection is closed
    assert answer.startswith(b"HTTP/1.1 " + status)


def test_half_a_request_is_not_taken_for_a_whole_one(receiver: Receiver) -> None:
    head = (
        "POST /v1/metrics HTTP/1.1\r\nHost: here\r\n"
        "Content-Type: application/x-protobuf\r\nContent-Length: 90\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", receiver.http_port), SOON) as client:
        client.sendall(head.encode() + _gauge("half").SerializeToString())
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
    _send(receiver, "http/protobuf", _gauge("whole"))
    assert receiver.capture.names() == ["whole"]


def test_after_closing_nothing_is_taken_and_the_ports_are_free() -> None:
    first = Receiver()
    with requests.Session() as session:
        url = f"{first.http_endpoint}/v1/metrics"
        body = _gauge().SerializeToString()
        assert session.post(url, body, headers=PROTOBUF, timeout=SOON).status_code == 200
        first.close()
        # Also not over the connection that was kept open.
        with pytest.raises(requests.exceptions.ConnectionError):
            session.post(url, body, headers=PROTOBUF, timeout=SOON)
        assert _send(first, "grpc", _gauge()).code is grpc.StatusCode.UNAVAILABLE
        with Receiver(http_port=first.http_port, grpc_port=first.grpc_port) as second:
            assert session.post(url, body, headers=PROTOBUF, timeout=SOON).status_code == 200
            assert _send(second, "grpc", _gauge()).code is grpc.StatusCode.OK
            assert (len(first.requests), len(second.requests)) == (1, 2)


def test_a_receiver_that_cannot_open_says_so_and_leaves_nothing_open(
    receiver: Receiver, tmp_path: Path, tls_files: Any
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        free = probe.getsockname()[1]
    tls = (tls_files.cert, tls_files.key)
    attempts: list[Callable[[], Receiver]] = [
        lambda: Receiver(http_port=receiver.http_port, grpc_port=free),
        lambda: Receiver(http_port=free, grpc_port=receiver.grpc_port),
        lambda: Receiver(http_port=free, grpc_port=receiver.grpc_port, tls=tls),
        lambda: Receiver(http_port=free, capture=tmp_path),
        lambda: Receiver(http_port=free, tls=(tls_files.cert, str(tmp_path / "absent.key"))),
    ]
    for attempt in attempts:
        with pytest.raises(OSError):
            attempt()
    with pytest.raises(OSError, match=f"gRPC cannot listen on 127.0.0.1:{receiver.grpc_port}; is the port taken"):
        attempts[1]()
    with Receiver(http_port=free) as again:
        assert again.http_port == free


UNCLOSED = """
import threading
from rlotel.receiver import Receiver, Reply
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
import grpc, requests

receiver = Receiver(reply=Reply(silent=True))
def post():
    headers = {"Content-Type": "application/x-protobuf"}
    requests.post(f"{receiver.http_endpoint}/v1/metrics", b"", headers=headers, timeout=600)
threading.Thread(target=post, daemon=True).start()
channel = grpc.insecure_channel(f"127.0.0.1:{receiver.grpc_port}")
call = MetricsServiceStub(channel).Export.future(ExportMetricsServiceRequest(), timeout=600)
assert receiver.wait_for(lambda _: len(receiver.refused) == 2, 20)
"""


def test_a_program_ends_though_its_receiver_was_not_closed() -> None:
    subprocess.run([sys.executable, "-c", UNCLOSED], check=True, timeout=60)
