"""One OTLP request to one place: over HTTP, over gRPC, into the capture file or onto the console.

Our own rather than the SDK's exporters, because those differ between versions in what matters here (how long
they retry, whether they may be interrupted, what they log and raise), hide what the server answered, and draw
from Python's global `random`. Each of these makes one attempt, within a time, and says in words why it failed.
"""

from __future__ import annotations

import gzip
import os
import sys
import time
import zlib
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from rlotel import causes
from rlotel.causes import NotDelivered
from rlotel.errors import SettingError
from rlotel.otlp_json import to_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlotel.capture import CaptureFile
    from rlotel.endpoint import Destination

Request = ExportMetricsServiceRequest | ExportTraceServiceRequest
Response = ExportMetricsServiceResponse | ExportTraceServiceResponse

USER_AGENT = "rlotel"
LONGEST_ANSWER = 64 * 1024
"""Bytes that are read of an answer; what OTLP answers takes some dozens."""

_RETRIED_STATUS = {408, 429, 502, 503, 504}
_RETRIED_CODES = {"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"}
_RESPONSES: Mapping[str, type[Response]] = {
    "metrics": ExportMetricsServiceResponse,
    "traces": ExportTraceServiceResponse,
}


class Transport(Protocol):
    """One attempt to bring a request to its place. Used by one thread at a time."""

    def send(self, request: Request, timeout: float) -> Response | None:
        """Send it and wait for the answer, `timeout` seconds at most; None where there is no answer to read.

        Raises:
            NotDelivered: it did not arrive.
        """

    def close(self) -> None:
        """Close what is open. Nothing may be sent afterwards."""


def connect(destination: Destination) -> Transport:
    """The transport for an OTLP or console destination. Connects at the first request only."""
    if destination.kind == "console":
        return ConsoleTransport()
    return GrpcTransport(destination) if destination.protocol == "grpc" else HttpTransport(destination)


class HttpTransport:
    """OTLP as protobuf over HTTP/1.1."""

    def __init__(self, destination: Destination) -> None:
        import requests

        self._destination = destination
        session = credentials("HTTP", destination.signal)
        self._session: requests.Session = session() if session else requests.Session()
        self._headers = {"Content-Type": "application/x-protobuf", "User-Agent": USER_AGENT}
        if destination.compression != "none":
            self._headers["Content-Encoding"] = destination.compression
        self._headers.update(destination.headers)
        self._response = _RESPONSES[destination.signal]

    def send(self, request: Request, timeout: float) -> Response | None:
        """Post it once."""
        import requests

        where, deadline = self._destination, time.monotonic() + timeout
        certificate: str | tuple[str, str] | None = where.client_certificate
        if where.client_certificate and where.client_key:
            certificate = (where.client_certificate, where.client_key)
        try:
            answer = self._session.post(
                where.url,
                data=_compressed(request.SerializeToString(), where.compression),
                headers=self._headers,
                timeout=timeout,
                # Given with every request, because an environment's REQUESTS_CA_BUNDLE beats the session's.
                verify=where.ca or self._session.verify,
                cert=certificate or self._session.cert,
                allow_redirects=False,
                stream=True,
            )
            with answer:
                body = _body(answer, deadline)
        except (requests.RequestException, OSError, ValueError) as error:
            retry = isinstance(error, (requests.ConnectionError, requests.Timeout))
            raise NotDelivered(causes.of_connection(error, timeout), retry=retry) from error
        return self._read(answer, body)

    def _read(self, answer: Any, body: bytes) -> Response | None:
        status = int(answer.status_code)
        if not 200 <= status < 300:
            raise NotDelivered(
                causes.of_status(status, body, answer.headers.get("Location")),
                retry=status in _RETRIED_STATUS,
                retry_after=causes.asked_by_http(answer.headers.get("Retry-After")),
            )
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            raise NotDelivered(causes.WEB_PAGE)
        try:
            return self._response.FromString(body)
        except DecodeError:
            return None  # some collectors answer a success in JSON or in words

    def close(self) -> None:
        """Close its connections: urllib3 does so as it is collected, but no more as Python exits."""
        for adapter in self._session.adapters.values():
            pools: Any = getattr(getattr(adapter, "poolmanager", None), "pools", None)
            for key in pools.keys() if pools else ():
                pools[key].close()
        self._session.close()


class GrpcTransport:
    """OTLP over gRPC."""

    def __init__(self, destination: Destination) -> None:
        _import_grpc_quietly()
        import grpc
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

        options = (
            # The default of up to 2 minutes keeps a collector that came back waiting.
            ("grpc.max_reconnect_backoff_ms", 5000),
            ("grpc.primary_user_agent", USER_AGENT),
        )
        if destination.insecure:
            self._channel = grpc.insecure_channel(destination.target, options)
        else:
            found = credentials("GRPC", destination.signal)
            secrets = found() if found else _grpc_credentials(destination)
            self._channel = grpc.secure_channel(destination.target, secrets, options)
        stub = MetricsServiceStub if destination.signal == "metrics" else TraceServiceStub
        self._export = stub(self._channel).Export
        self._headers = tuple(destination.headers.items())
        gzipped = destination.compression == "gzip"
        self._compression = grpc.Compression.Gzip if gzipped else grpc.Compression.NoCompression

    def send(self, request: Request, timeout: float) -> Response | None:
        """Call it once."""
        import grpc

        try:
            answer: Response = self._export(
                request, timeout=timeout, metadata=self._headers, compression=self._compression
            )
        except grpc.RpcError as error:
            code = error.code().name
            after = causes.asked_by_grpc(error)
            raise NotDelivered(
                causes.of_grpc(code, error.details() or "", timeout),
                retry=code in _RETRIED_CODES or (code == "RESOURCE_EXHAUSTED" and after is not None),
                retry_after=after,
            ) from error
        except ValueError as error:  # the channel was closed meanwhile
            raise NotDelivered(str(error)) from error
        return answer

    def close(self) -> None:
        """Close the channel, and with it a call that still waits."""
        self._channel.close()


class FileTransport:
    """OTLP JSON lines in a capture file, which several transports may share."""

    def __init__(self, file: CaptureFile) -> None:
        self._file = file

    def send(self, request: Request, timeout: float) -> None:  # noqa: ARG002 - a disk knows no timeout
        """Append it."""
        if not self._file.write(request):
            full = f"it is full ({self._file.limit_bytes} bytes)"
            raise NotDelivered(full if self._file.full else f"it cannot be written: {self._file.error}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ConsoleTransport:
    """OTLP JSON lines on standard output, for a look at what is sent."""

    def send(self, request: Request, timeout: float) -> None:  # noqa: ARG002 - a console knows no timeout
        """Print it."""
        try:
            sys.stdout.write(to_line(request) + "\n")
            sys.stdout.flush()
        except (OSError, ValueError) as error:
            raise NotDelivered(f"standard output cannot be written: {error}") from error

    def close(self) -> None:
        """Nothing is open."""


def credentials(protocol: str, signal: str) -> Any:
    """The maker of credentials that `OTEL_PYTHON_EXPORTER_OTLP_*_CREDENTIAL_PROVIDER` names, or None.

    It makes a `requests.Session` for HTTP, `grpc.ChannelCredentials` for gRPC; Google's authentication for its
    Telemetry API comes this way.

    Raises:
        SettingError: no such provider is installed.
    """
    for part in (f"{protocol}_{signal.upper()}", protocol):
        variable = f"OTEL_PYTHON_EXPORTER_OTLP_{part}_CREDENTIAL_PROVIDER"
        if name := os.environ.get(variable, "").strip():
            for entry in entry_points(group="opentelemetry_otlp_credential_provider", name=name):
                return entry.load()
            raise SettingError(variable, f"no package that provides {name!r} is installed")
    return None


def _import_grpc_quietly() -> None:
    """Import gRPC so that its C core does not print a line of its own for every handshake that fails."""
    if "grpc" in sys.modules or "GRPC_VERBOSITY" in os.environ:
        return  # then its user has decided
    os.environ["GRPC_VERBOSITY"] = "ERROR"
    try:
        import grpc  # noqa: F401 - it reads the variable now
    finally:
        del os.environ["GRPC_VERBOSITY"]


def _grpc_credentials(destination: Destination) -> Any:
    import grpc

    files = (destination.ca, destination.client_key, destination.client_certificate)
    ca, key, certificate = (Path(file).read_bytes() if file else None for file in files)
    return grpc.ssl_channel_credentials(ca, key, certificate)


def _body(answer: Any, deadline: float) -> bytes:
    """The answer's beginning; all of it might never end, since the timeout is for each piece that comes."""
    body = bytearray()
    for piece in answer.iter_content(16):
        body += piece
        if len(body) > LONGEST_ANSWER:
            break
        if time.monotonic() > deadline:
            raise NotDelivered("its answer does not end in time", retry=True)
    return bytes(body)


def _compressed(body: bytes, compression: str) -> bytes:
    # Level 1: a third of the time of the default or less, for a tenth more bytes.
    if compression == "gzip":
        return gzip.compress(body, 1)
    return zlib.compress(body, 1) if compression == "deflate" else body
