"""Over real sockets: what is said, once, about what does not arrive, and that it is counted."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

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

from rlotel.receiver import Receiver, Reply
from tests.export.conftest import TlsFiles
from tests.export.sending import PROTOCOLS, Failures, endpoint, everything, free_port, lines, record, sending


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
