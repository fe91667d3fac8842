"""Why a request did not arrive, in plain words: from the errors of HTTP, of gRPC and of the network below."""

from __future__ import annotations

import re
import socket
import ssl
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 200
"""Characters of a server's own words that are passed on."""

_GRPC_PORT = "it speaks gRPC: set RLOTEL_PROTOCOL=grpc"
_HTTP_PORT = "it speaks HTTP/1: set RLOTEL_PROTOCOL=http/protobuf, or use the port for gRPC, mostly 4317"
_USE_PLAIN = "it answers in plaintext, not TLS: use http://"
_USE_TLS = "it expects TLS: use https://"
WEB_PAGE = "it answers with a web page, so it is no OTLP receiver: look at host and port"
_UNTRUSTED = "its certificate is not trusted: name its CA in OTEL_EXPORTER_OTLP_CERTIFICATE"


class NotDelivered(Exception):
    """One request did not arrive.

    Attributes:
        cause: why, in plain words.
        retry: whether the same request may succeed a little later.
        retry_after: seconds that the server asked to wait, if it did.
    """

    def __init__(self, cause: str, *, retry: bool = False, retry_after: float | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.retry = retry
        self.retry_after = retry_after


def of_connection(error: BaseException, seconds: float) -> str:
    """The cause of a failed HTTP exchange, from whatever the HTTP library raised.

    Args:
        error: what was raised; what it was raised from is looked through too.
        seconds: how long was waited.
    """
    for link in _chain(error):
        if isinstance(link, socket.gaierror):
            return "its name cannot be resolved (DNS)"
        if isinstance(link, ssl.SSLError):
            return of_tls(str(link))
        if isinstance(link, ConnectionRefusedError):
            return "connection refused: nothing listens there"
    words = " ".join(f"{type(link).__name__} {link}" for link in _chain(error))
    if "BadStatusLine" in words:
        # A TLS server answers a plaintext request with an alert record (type 0x15), a gRPC server with an
        # HTTP/2 settings frame.
        return _USE_TLS if "x15" in words or "\x15" in words else _GRPC_PORT
    if "NameResolution" in words:
        return "its name cannot be resolved (DNS)"
    if "imeout" in words or "timed out" in words:
        return f"no answer within {seconds:.0f} s"
    if "RemoteDisconnected" in words or "ConnectionReset" in words or "aborted" in words:
        return "it closed the connection without an answer; if it expects TLS, use https://"
    return _short(str(error)) or type(error).__name__


def of_tls(words: str) -> str:
    """The cause of a failed TLS handshake, from OpenSSL's words."""
    upper = words.upper().replace(" ", "_")
    if "WRONG_VERSION_NUMBER" in upper or "RECORD_LAYER_FAILURE" in upper or "PACKET_LENGTH" in upper:
        return _USE_PLAIN
    if "CERTIFICATE_VERIFY_FAILED" in upper:
        return f"{_UNTRUSTED} ({_reason(words)})"
    if "CERTIFICATE_REQUIRED" in upper:
        return "it asks for a client certificate: set OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and …_CLIENT_KEY"
    return f"the TLS handshake failed: {_short(words)}"


def of_status(status: int, body: bytes, location: str | None = None) -> str:
    """The cause of an HTTP answer that is no success."""
    said = _short(re.sub(rb"[^\x20-\x7e]+", b" ", body).decode())
    words = f"HTTP {status}" + (f": {said}" if said else "")
    if 300 <= status < 400:
        return f"HTTP {status}: it redirects to {location or 'somewhere else'}; set that as the endpoint"
    if status in {401, 403, 407}:
        return f"not allowed ({words}); check the token in OTEL_EXPORTER_OTLP_HEADERS"
    if status in {404, 405}:
        return f"no OTLP receiver at this path ({words})"
    if status == 413:
        return f"the request is too large for it ({words})"
    if status == 415 or (status == 400 and "HTTP/2" in said):
        return f"it does not take OTLP as protobuf over HTTP/1 ({words})"
    if status in {429, 502, 503, 504}:
        return f"it is overloaded or not ready ({words})"
    return f"it refused the request ({words})"


def of_grpc(code: str, details: str, seconds: float) -> str:
    """The cause of a failed gRPC call.

    Args:
        code: the name of the status code.
        details: gRPC's own words.
        seconds: how long was waited.
    """
    words = f"{code}: {_short(details)}" if details else code
    if code == "DEADLINE_EXCEEDED":
        return f"no answer within {seconds:.0f} s"
    if code == "UNAVAILABLE":
        return _of_unavailable(details) or f"it is not available ({words})"
    if code in {"UNAUTHENTICATED", "PERMISSION_DENIED"}:
        return f"not allowed ({words}); check the token in OTEL_EXPORTER_OTLP_HEADERS"
    if code == "UNIMPLEMENTED":
        return f"no OTLP receiver there ({words})"
    if code == "RESOURCE_EXHAUSTED":
        return f"it is overloaded, or the request is too large for it ({words})"
    if _speaks_http(details):
        return _HTTP_PORT
    return f"it refused the request ({words})"


def asked_by_http(retry_after: str | None) -> float | None:
    """The seconds that a `Retry-After` asks to wait, or None."""
    try:
        return max(0.0, float(retry_after or ""))
    except ValueError:
        return None  # a date: our own pause will do


def asked_by_grpc(error: Any) -> float | None:
    """The seconds that the trailers of a failed call ask to wait, or None."""
    from google.protobuf.message import DecodeError
    from google.rpc.error_details_pb2 import RetryInfo
    from google.rpc.status_pb2 import Status

    trailers = dict(error.trailing_metadata() or ())
    info = RetryInfo()
    try:
        if packed := trailers.get("grpc-status-details-bin"):
            for detail in Status.FromString(packed).details:
                if detail.Unpack(info):
                    return float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9)
        if plain := trailers.get("google.rpc.retryinfo-bin"):
            info = RetryInfo.FromString(plain)
            return float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9)
    except DecodeError:
        pass
    return None


def _of_unavailable(details: str) -> str | None:
    lower = details.lower()
    if "dns" in lower or "name resolution" in lower or "domain name" in lower:
        return "its name cannot be resolved (DNS)"
    if "ssl_error" in lower or "handshake" in lower or "certificate" in lower:
        return of_tls(details)
    if "refused" in lower:
        return "connection refused: nothing listens there"
    if _speaks_http(details):
        return _HTTP_PORT
    if "connection reset" in lower or "socket closed" in lower or "broken pipe" in lower:
        return f"it closed the connection: it may expect TLS (use https://) or HTTP/1 ({_short(details)})"
    if "timed out" in lower or "timeout" in lower:
        return "it does not answer"
    return None


def _speaks_http(details: str) -> bool:
    return any(sign in details for sign in ("http1.x", "HTTP/1", "http2 header with status", "parsing HTTP/2"))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, what it was raised from, and errors that HTTP libraries put in their arguments."""
    pending, seen = [error], set()
    while pending:
        link = pending.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        inner = [link.__cause__, link.__context__, getattr(link, "reason", None), *link.args]
        pending += [item for item in inner if isinstance(item, BaseException)]


def _reason(words: str) -> str:
    match = re.search(r"certificate verify failed: ([^():]+)", words)
    return match[1].strip() if match else "certificate verify failed"


def _short(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
