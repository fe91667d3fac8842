"""An embedded OTLP receiver, gRPC and HTTP: what the demo, the viewer and the tests send to.

It keeps what it accepts in memory and, on request, as OTLP JSON lines; and it can be told to answer badly,
so that the failures of a collector can be tried. It is a tool for one machine, not a collector: what it
keeps grows until `clear`.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from rlotel import capture as captures
from rlotel.otlp_json import signal_of
from rlotel.receiver.grpc import GrpcServer
from rlotel.receiver.http import HttpServer
from rlotel.receiver.reply import Certificate, Protocol, Reply, Request

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from rlotel.otlp_json import ExportRequest

__all__ = ["Protocol", "Receiver", "Reply", "Request"]


class Receiver:
    """Listens for OTLP from its construction to `close`, or to the end of its `with`.

    Args:
        http_port: the port of OTLP over HTTP (protobuf and JSON); 0 takes a free one.
        grpc_port: the port of OTLP over gRPC; 0 takes a free one.
        host: the address to listen on.
        capture: a file that every accepted request is appended to, up to the limit of a capture file.
        require_headers: what every request must carry (names in any case, values exactly); without it the
            answer is 401 or UNAUTHENTICATED.
        tls: the files of a PEM certificate chain and its private key; both protocols then speak TLS only.
        reply: how to answer; `receiver.reply` may be set to another at any time.

    Raises:
        OSError: a port is taken, or a file cannot be opened.
    """

    def __init__(
        self,
        http_port: int = 0,
        grpc_port: int = 0,
        host: str = "127.0.0.1",
        capture: str | os.PathLike[str] | None = None,
        require_headers: Mapping[str, str] | None = None,
        tls: Certificate | None = None,
        reply: Reply | None = None,
    ) -> None:
        self.reply = reply or Reply()
        self.capture_file: captures.CaptureFile | None = None
        self._host = host
        self._scheme = "http" if tls is None else "https"
        self._required = {name.lower(): value for name, value in (require_headers or {}).items()}
        self._changed = threading.Condition()
        self._arrivals = 0
        self._forget()
        with ExitStack() as opened:
            if capture is not None:
                self.capture_file = opened.enter_context(captures.CaptureFile(capture))
                if self.capture_file.error is not None:
                    raise self.capture_file.error
            self._http = HttpServer(host, http_port, tls, self._take)
            opened.callback(self._http.close)
            self._grpc = GrpcServer(host, grpc_port, tls, self._take)
            opened.callback(self._grpc.close)
            self._opened = opened.pop_all()

    @property
    def http_port(self) -> int:
        """The port that OTLP over HTTP is served on."""
        return self._http.port

    @property
    def grpc_port(self) -> int:
        """The port that OTLP over gRPC is served on."""
        return self._grpc.port

    @property
    def http_endpoint(self) -> str:
        """The base URL for `OTEL_EXPORTER_OTLP_ENDPOINT` with `http/protobuf`; `/v1/…` goes after it."""
        return f"{self._scheme}://{self._host}:{self.http_port}"

    @property
    def grpc_endpoint(self) -> str:
        """The URL for `OTEL_EXPORTER_OTLP_ENDPOINT` with `grpc`."""
        return f"{self._scheme}://{self._host}:{self.grpc_port}"

    @property
    def capture(self) -> captures.Capture:
        """All points and spans accepted so far: a snapshot, safe from any thread."""
        with self._changed:
            return captures.Capture(tuple(self._points), tuple(self._spans))

    @property
    def requests(self) -> list[Request]:
        """The requests accepted so far, in order of arrival.

        One answered late or with a partial success counts as accepted: its data was taken.
        """
        with self._changed:
            return list(self._accepted)

    @property
    def refused(self) -> list[Request]:
        """The requests that got a bad answer or none, in order of arrival; their content is not captured."""
        with self._changed:
            return list(self._refused)

    def wait_for(self, predicate: Callable[[captures.Capture], object], timeout: float) -> bool:
        """Waits until the predicate holds for what was captured; True if it did within `timeout` seconds.

        The predicate is called at once and after every arrival, refused ones too, in this thread; it may
        look at the receiver's other properties.
        """
        deadline = time.monotonic() + timeout
        while True:
            with self._changed:
                seen = self._arrivals
            if predicate(self.capture):
                return True
            with self._changed:
                left = deadline - time.monotonic()
                if not self._changed.wait_for(lambda: self._arrivals != seen, left):  # noqa: B023 - called here
                    return False

    def clear(self) -> None:
        """Forgets what was received; a capture file keeps it."""
        with self._changed:
            self._forget()

    def close(self) -> None:
        """Stops both servers and cuts every connection, answered or not. A second call does nothing."""
        self._opened.close()

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _forget(self) -> None:
        self._accepted: list[Request] = []
        self._refused: list[Request] = []
        self._points: list[captures.Point] = []
        self._spans: list[captures.SpanRecord] = []

    def _take(self, protocol: Protocol, headers: dict[str, str], message: ExportRequest) -> Reply:
        """Notes one request, in the server's thread, and says how to answer it."""
        request = Request(signal_of(message), protocol, headers, message)
        wrong = [name for name, value in self._required.items() if headers.get(name) != value]
        reply = self.reply
        if wrong:
            reply = Reply(http_status=401, message=f"header {wrong[0]} is missing or wrong")
        points, spans = captures.flatten(message)
        with self._changed:
            if reply.accepts(protocol):
                self._accepted.append(request)
                self._points += points
                self._spans += spans
                if self.capture_file is not None:
                    self.capture_file.write(message)
            else:
                self._refused.append(request)
            self._arrivals += 1
            self._changed.notify_all()
        return reply
