"""The embedded receiver's connections: TLS, what is no OTLP, opening and closing."""

import gzip
import socket
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
import requests
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub

from rlotel.receiver import Receiver
from tests.export.messages import SOON, Send, gauge

PROTOBUF = {"Content-Type": "application/x-protobuf"}


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
                MetricsServiceStub(channel).Export(gauge(), timeout=SOON)  # type: ignore[no-untyped-call]
            assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
        assert (receiver.requests, receiver.refused) == ([], [])


def _post(receiver: Receiver, body: bytes, path: str = "/v1/metrics", **headers: str) -> tuple[int, str]:
    headers = {**PROTOBUF, **{name.replace("_", "-"): value for name, value in headers.items()}}
    answer = requests.post(receiver.http_endpoint + path, body, headers=headers, timeout=SOON)
    return answer.status_code, answer.text


def test_what_is_no_otlp_over_http_is_told_so(receiver: Receiver) -> None:
    body = gauge().SerializeToString()
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


def test_half_a_request_is_not_taken_for_a_whole_one(send: Send, receiver: Receiver) -> None:
    head = (
        "POST /v1/metrics HTTP/1.1\r\nHost: here\r\n"
        "Content-Type: application/x-protobuf\r\nContent-Length: 90\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", receiver.http_port), SOON) as client:
        client.sendall(head.encode() + gauge("half").SerializeToString())
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
    send(receiver, "http/protobuf", gauge("whole"))
    assert receiver.capture.names() == ["whole"]


def test_after_closing_nothing_is_taken_and_the_ports_are_free(send: Send) -> None:
    first = Receiver()
    with requests.Session() as session:
        url = f"{first.http_endpoint}/v1/metrics"
        body = gauge().SerializeToString()
        assert session.post(url, body, headers=PROTOBUF, timeout=SOON).status_code == 200
        first.close()
        # Also not over the connection that was kept open.
        with pytest.raises(requests.exceptions.ConnectionError):
            session.post(url, body, headers=PROTOBUF, timeout=SOON)
        assert send(first, "grpc", gauge()).code is grpc.StatusCode.UNAVAILABLE
        with Receiver(http_port=first.http_port, grpc_port=first.grpc_port) as second:
            assert session.post(url, body, headers=PROTOBUF, timeout=SOON).status_code == 200
            assert send(second, "grpc", gauge()).code is grpc.StatusCode.OK
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
