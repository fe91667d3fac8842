"""Over real sockets: what arrives, and what is said, once, about what does not."""

import importlib
import logging
import random
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)
from opentelemetry.sdk.resources import Resource

from rlotel import capture, providers
from rlotel.capture import Capture
from rlotel.config import resolve
from rlotel.delivery import Delivery
from rlotel.providers import Providers
from rlotel.receiver import Receiver, Reply
from rlotel.semconv import Metric
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from tests.export.conftest import TlsFiles, own_address

PROTOCOLS = ["grpc", "http/protobuf"]
TOKEN = "Bearer t0ken"


@dataclass
class Failures:
    """How often the export of each signal is counted as failed."""

    counted: dict[str, int] = field(default_factory=lambda: {"metrics": 0, "traces": 0})

    def count(self, metric: Metric, value: float, attributes: Mapping[str, str]) -> None:
        assert metric is m.RLOTEL_EXPORT_FAILURES
        self.counted[attributes[attr.RLOTEL_EXPORT_SIGNAL.name]] += int(value)


@pytest.fixture
def failures() -> Failures:
    return Failures()


@contextmanager
def sending(failures: Failures, environ: Mapping[str, str]) -> Iterator[Providers]:
    """Providers that export every second, and hold one counter and one span."""
    environ = {"RLOTEL_EXPORT_INTERVAL": "0.2", "OTEL_EXPORTER_OTLP_TIMEOUT": "2", **environ}
    built = providers.build(
        resolve({}, environ), Resource({"service.name": "test"}), Delivery(failures.count), environ
    )
    record(built)
    try:
        yield built
    finally:
        built.close(2)


def record(built: Providers) -> None:
    built.meter_provider.get_meter("test").create_counter("test.counter").add(3.0)
    built.tracer_provider.get_tracer("test").start_span("test.span").end()


def everything(captured: Capture) -> bool:
    return captured.names() == ["test.counter"] and [span.name for span in captured.spans()] == ["test.span"]


def endpoint(receiver: Receiver, protocol: str) -> dict[str, str]:
    url = receiver.grpc_endpoint if protocol == "grpc" else receiver.http_endpoint
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "extra",
    [{}, {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, {"OTEL_EXPORTER_OTLP_INSECURE": "1"}],
    ids=["plain", "gzip", "insecure"],
)
def test_both_signals_arrive(receiver: Receiver, failures: Failures, protocol: str, extra: dict[str, str]) -> None:
    with sending(failures, {**endpoint(receiver, protocol), **extra}) as built:
        assert built.flush(5)
    assert receiver.wait_for(everything, 5)
    assert {request.protocol for request in receiver.requests} == {protocol}
    assert receiver.capture.points("test.counter")[-1].value == 3.0
    assert failures.counted == {"metrics": 0, "traces": 0}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tls_with_a_private_ca_and_a_token_in_a_header(
    tls_files: TlsFiles, failures: Failures, protocol: str
) -> None:
    with Receiver(tls=(tls_files.cert, tls_files.key), require_headers={"Authorization": TOKEN}) as receiver:
        environ = {
            **endpoint(receiver, protocol),
            "OTEL_EXPORTER_OTLP_CERTIFICATE": tls_files.ca,
            "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20t0ken",
        }
        with sending(failures, environ) as built:
            assert built.flush(5)
        assert receiver.wait_for(everything, 5)
        assert receiver.refused == []


def test_the_gke_tutorials_environment_delivers(failures: Failures) -> None:
    address = own_address()
    with Receiver(grpc_port=4317, host=address) as receiver:
        environ = {
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"{address}:4317",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{address}:4317",
        }
        with sending(failures, environ) as built:
            assert built.flush(5)
        assert receiver.wait_for(everything, 5)
        assert {request.protocol for request in receiver.requests} == {"grpc"}


@contextmanager
def free_port() -> Iterator[int]:
    """A port that nothing listens on, and nothing else takes."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def lines(caplog: pytest.LogCaptureFixture, signal: str) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "rlotel" and f" {signal} " in r.getMessage()]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_does_not_arrive_is_said_once_and_counted_until_it_arrives_again(
    receiver: Receiver, failures: Failures, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.reply = Reply(http_status=403, message="no such project")
    with sending(failures, endpoint(receiver, protocol)) as built:
        for _ in range(3):
            assert not built.flush(5)
            record(built)
        assert failures.counted["traces"] == 3
        assert failures.counted["metrics"] >= 3
        for signal in ("metrics", "traces"):
            (line,) = lines(caplog, signal)
            assert line.startswith(f"rlotel: {signal} do not reach {built.destinations[0].url[:16]}")
            assert "not allowed" in line
            assert "no such project" in line
            assert line.endswith("Training is not affected; run `rlotel doctor` to see why.")
        receiver.reply = Reply()
        assert built.flush(5)
        record(built)
        assert built.flush(5)
        for signal in ("metrics", "traces"):
            assert lines(caplog, signal)[1:] == [
                f"rlotel: {signal} reach {built.destinations[signal == 'traces'].describe()} again"
            ]


CAUSES = {
    400: "it refused the request",
    401: "check the token",
    404: "no OTLP receiver",
    503: "not ",  # not ready, not available
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", CAUSES)
def test_a_bad_answer_is_explained(
    receiver: Receiver, failures: Failures, protocol: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.reply = Reply(http_status=status, message="because I say so")
    with sending(failures, {**endpoint(receiver, protocol), "OTEL_TRACES_EXPORTER": "none"}) as built:
        assert not built.flush(5)
    (line,) = lines(caplog, "metrics")
    assert CAUSES[status] in line
    assert "because I say so" in line


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_refused_connection_and_an_unknown_name_are_explained(
    failures: Failures, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    with free_port() as port:
        environ = {
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://nowhere.invalid:4317",
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        }
        with sending(failures, environ) as built:
            assert not built.flush(5)
    assert "connection refused" in lines(caplog, "metrics")[0]
    assert "(DNS)" in lines(caplog, "traces")[0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_answer_is_explained(
    receiver: Receiver, failures: Failures, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.reply = Reply(silent=True)
    with sending(failures, {**endpoint(receiver, protocol), "OTEL_EXPORTER_OTLP_TIMEOUT": "0.5"}) as built:
        assert not built.flush(5)
    assert "(no answer within" in lines(caplog, "metrics")[0]


@pytest.mark.parametrize(
    ("protocol", "scheme", "server", "words"),
    [
        ("grpc", "https", "plain grpc", "plaintext"),
        ("http/protobuf", "https", "plain http", "plaintext"),
        ("grpc", "http", "tls grpc", "TLS"),
        ("http/protobuf", "http", "tls http", "TLS"),
        ("grpc", "https", "tls grpc", "OTEL_EXPORTER_OTLP_CERTIFICATE"),
        ("http/protobuf", "https", "tls http", "OTEL_EXPORTER_OTLP_CERTIFICATE"),
        ("grpc", "http", "plain http", "HTTP/1"),
        ("http/protobuf", "http", "plain grpc", "gRPC"),
    ],
)
def test_a_wrong_scheme_or_protocol_is_explained(
    tls_files: TlsFiles,
    failures: Failures,
    caplog: pytest.LogCaptureFixture,
    protocol: str,
    scheme: str,
    server: str,
    words: str,
) -> None:
    with Receiver(tls=(tls_files.cert, tls_files.key) if "tls" in server else None) as receiver:
        port = receiver.grpc_port if "grpc" in server else receiver.http_port
        environ = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"{scheme}://127.0.0.1:{port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
            "OTEL_TRACES_EXPORTER": "none",
        }
        with sending(failures, environ) as built:
            assert not built.flush(5)
    assert words in lines(caplog, "metrics")[0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_collector_that_asks_for_a_pause_gets_it_and_nothing_is_lost(
    receiver: Receiver, failures: Failures, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.reply = Reply(http_status=503, retry_after=1)
    with sending(failures, {**endpoint(receiver, protocol), "OTEL_EXPORTER_OTLP_TIMEOUT": "10"}) as built:
        flushed: list[bool] = []
        flush = threading.Thread(target=lambda: flushed.append(built.flush(10)))
        flush.start()
        assert receiver.wait_for(lambda _: len(receiver.refused) >= 2, 5)
        receiver.reply = Reply()
        flush.join(10)
        assert flushed == [True]
    assert everything(receiver.capture)
    assert failures.counted == {"metrics": 0, "traces": 0}
    assert caplog.records == []


RETRY = RetryInfo(retry_delay=Duration(nanos=200_000_000))


def _status() -> bytes:
    status = Status(code=8, message="too many")
    status.details.add().Pack(RETRY)
    return bytes(status.SerializeToString())


@pytest.mark.parametrize(
    "trailer",
    [("grpc-status-details-bin", _status()), ("google.rpc.retryinfo-bin", RETRY.SerializeToString())],
    ids=["standard", "python"],
)
def test_a_grpc_collector_that_is_out_of_quota_is_asked_again_when_it_says(
    failures: Failures, trailer: tuple[str, bytes]
) -> None:
    calls: list[float] = []

    class Busy(MetricsServiceServicer):
        def Export(  # noqa: N802 - the protocol's
            self, request: ExportMetricsServiceRequest, context: grpc.ServicerContext
        ) -> ExportMetricsServiceResponse:
            calls.append(time.monotonic())
            if len(calls) == 1:
                context.set_trailing_metadata((trailer,))
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many")
            return ExportMetricsServiceResponse()

    server = grpc.server(ThreadPoolExecutor(1))
    add_MetricsServiceServicer_to_server(Busy(), server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        environ = {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"http://127.0.0.1:{port}", "RLOTEL_PROTOCOL": "grpc"}
        with sending(failures, {**environ, "OTEL_TRACES_EXPORTER": "none"}) as built:
            assert built.flush(5)
    finally:
        server.stop(None)
    assert calls[1] - calls[0] >= 0.2
    assert failures.counted["metrics"] == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_partial_success_is_said_once_and_counted(
    receiver: Receiver, failures: Failures, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.reply = Reply(rejected=2, message="too old")
    with sending(failures, endpoint(receiver, protocol)) as built:
        assert built.flush(5)
        record(built)
        assert built.flush(5)
    said = [record.getMessage().partition(" rejected ")[2] for record in caplog.records]
    assert sorted(said) == ["2 points: too old", "2 spans: too old"]
    assert failures.counted["traces"] == 2
    assert failures.counted["metrics"] >= 2


def test_without_an_endpoint_both_signals_go_to_a_file_and_one_line_says_so(
    failures: Failures, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "new" / "run.jsonl"
    with sending(failures, {"RLOTEL_CAPTURE": str(file)}) as built:
        assert built.flush(5)
    assert everything(capture.read(file))
    (said,) = [record.getMessage() for record in caplog.records]
    assert str(file) in said
    assert "RLOTEL_ENDPOINT=" in said


def test_a_file_that_cannot_be_written_is_said_once_and_counted(
    failures: Failures, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with sending(failures, {"RLOTEL_CAPTURE": str(tmp_path)}) as built:
        assert not built.flush(5)
        assert not built.flush(5)
    assert len(lines(caplog, "metrics")) == 2  # where it goes, and that it does not get there
    assert failures.counted["metrics"] >= 2


def test_the_console_shows_what_would_be_sent(failures: Failures, capfd: pytest.CaptureFixture[str]) -> None:
    with sending(failures, {"OTEL_METRICS_EXPORTER": "console", "OTEL_TRACES_EXPORTER": "console"}) as built:
        assert built.flush(5)
    shown = capfd.readouterr().out
    assert "test.counter" in shown
    assert "test.span" in shown


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_programs_random_numbers_are_its_own(receiver: Receiver, failures: Failures, protocol: str) -> None:
    receiver.reply = Reply(http_status=429, retry_after=1)
    state = random.getstate()
    with sending(failures, endpoint(receiver, protocol)) as built:
        built.flush(0.5)
        receiver.reply = Reply()
        with built.tracer_provider.get_tracer("test").start_as_current_span("outer"):
            record(built)
        assert built.flush(5)
    assert random.getstate() == state


def test_a_provider_of_credentials_that_fails_is_explained_and_asked_again(
    receiver: Receiver,
    failures: Failures,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    package = tmp_path / "tokens-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: tokens\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[opentelemetry_otlp_credential_provider]\ntokens = tokens:Session\n"
    )
    (tmp_path / "tokens.py").write_text(
        "import requests\n"
        "class RefreshError(Exception): pass\n"
        "class Session(requests.Session):\n"
        "    expired = True\n"
        "    def request(self, *args, **kwargs):\n"
        "        if Session.expired: raise RefreshError('the token cannot be renewed')\n"
        "        return super().request(*args, **kwargs)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER", "tokens")
    with sending(failures, endpoint(receiver, "http/protobuf")) as built:
        assert not built.flush(5)
        for signal in ("metrics", "traces"):
            (line,) = lines(caplog, signal)
            assert "RefreshError: the token cannot be renewed" in line
        monkeypatch.setattr(importlib.import_module("tokens").Session, "expired", False)
        record(built)
        assert built.flush(5)
    assert receiver.capture.latest("test.counter")[0].value == 6


def test_a_log_handler_that_raises_does_not_end_the_export(receiver: Receiver, failures: Failures) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("disk full")

    handler = Broken()
    logging.getLogger("rlotel").addHandler(handler)
    try:
        receiver.reply = Reply(http_status=403)
        with sending(failures, endpoint(receiver, "http/protobuf")) as built:
            assert not built.flush(5)
            receiver.reply = Reply()
            record(built)
            assert built.flush(5)
    finally:
        logging.getLogger("rlotel").removeHandler(handler)
    assert receiver.capture.latest("test.counter")[0].value == 6
    assert len(receiver.capture.spans("test.span")) == 1
