"""A receiver, and a private certificate authority, for the tests of everything that is sent."""

import datetime
import ipaddress
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import grpc
import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from rlotel import otlp_json
from rlotel.receiver import Receiver
from tests.export.sending import Failures

# Python 3.13 verifies strictly: a CA must say that it signs certificates, and each certificate who signed it.
_SIGNS = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class TlsFiles:
    """PEM files: the CA that clients must trust, and the server's chain and key."""

    ca: str
    cert: str
    key: str


@pytest.fixture(scope="session")
def tls_files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    """A server certificate for 127.0.0.1 and localhost, signed by a CA that nobody else knows."""
    folder = tmp_path_factory.mktemp("tls")
    ca_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rlotel test CA")])
    ca = (
        _certificate(ca_name, ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_SIGNS, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    server = (
        _certificate(server_name, ca_name, server_key.public_key())
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    key = server_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem = serialization.Encoding.PEM
    return TlsFiles(
        ca=_written(folder / "ca.pem", ca.public_bytes(pem)),
        cert=_written(folder / "server.pem", server.public_bytes(pem)),
        key=_written(folder / "server.key", key),
    )


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An OTLP receiver on free ports, both protocols."""
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def failures() -> Failures:
    """How often the export of each signal was counted as failed."""
    return Failures()


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def _written(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def own_address() -> str:
    """An address of the loopback network that no other process uses, for tests that need a certain port."""
    pid = os.getpid()
    return f"127.{64 + pid // 65536 % 128}.{pid // 256 % 256}.{pid % 256}"


@dataclass(frozen=True)
class Ended:
    """A program that ran: its exit code, what it printed, and when it said it was done (`time.time()`)."""

    code: int
    out: str
    err: str
    seconds_after_done: float
    """From the line `done` on its standard output to its end."""


class Program:
    """A Python program in a process of its own, without settings of ours in its environment."""

    def __init__(self, source: str, environ: Mapping[str, str], *arguments: str) -> None:
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "RLOTEL_"))}
        self._process = subprocess.Popen(
            # Python 3.12 and later warn of every fork with threads, which is what some of these try.
            [
                sys.executable,
                "-W",
                "ignore:This process:DeprecationWarning",
                "-c",
                textwrap.dedent(source),
                *arguments,
            ],
            env={**ours, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._out: list[str] = []
        self._err: list[str] = []
        self._lines = threading.Condition()
        self._done = self._end = 0.0
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((self._process.stdout, self._out), (self._process.stderr, self._err))
        ]
        for reader in self._readers:
            reader.start()

    def wait_for(self, line: str, timeout: float = 20) -> None:
        """Wait until it has printed a line."""
        with self._lines:
            assert self._lines.wait_for(lambda: f"{line}\n" in self._out, timeout), (self._out, self._err)

    def send(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def end(self, timeout: float = 30) -> Ended:
        """Wait for its end."""
        try:
            code = self._process.wait(timeout)
        finally:
            self._process.kill()
        ended = time.monotonic()
        for reader in self._readers:
            reader.join(5)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        return Ended(code, "".join(self._out), "".join(self._err), ended - self._done if self._done else 0.0)

    def _read(self, stream: IO[str], lines: list[str]) -> None:
        for line in stream:
            with self._lines:
                if line == "done\n":
                    self._done = time.monotonic()
                lines.append(line)
                self._lines.notify_all()


@pytest.fixture
def program() -> type[Program]:
    """Starts Python programs."""
    return Program


_STUBS: dict[str, Callable[[grpc.Channel], Any]] = {
    "metrics": MetricsServiceStub,
    "traces": TraceServiceStub,
    "logs": LogsServiceStub,
}


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
    timeout: float = 20.0,
) -> Answer:
    """One request without retries."""
    signal = otlp_json.signal_of(request)
    if protocol == "grpc":
        with grpc.insecure_channel(receiver.grpc_endpoint.removeprefix("http://")) as channel:
            try:
                response = _STUBS[signal](channel).Export(
                    request, timeout=timeout, metadata=tuple((headers or {}).items())
                )
            except grpc.RpcError as error:
                return Answer(error.code(), error.details() or "")
            return Answer(grpc.StatusCode.OK, str(response))
    response = requests.post(
        f"{receiver.http_endpoint}/v1/{signal}",
        request.SerializeToString(),
        headers={"Content-Type": "application/x-protobuf", **(headers or {})},
        timeout=timeout,
    )
    return Answer(response.status_code, response.text, response.headers)


@pytest.fixture
def send() -> Callable[..., Answer]:
    """Sends one request to a receiver, without retries."""
    return _send
