"""The HTTP half of the embedded receiver: OTLP/HTTP with protobuf or JSON bodies."""

from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
import zlib
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from rlotel.otlp_json import REQUESTS, from_text, to_object
from rlotel.receiver.reply import MESSAGE_LIMIT_BYTES, Certificate, Protocol, Reply, Take

if TYPE_CHECKING:
    from rlotel.otlp_json import ExportRequest

_PATHS = {f"/v1/{signal}": kind for signal, kind in REQUESTS.items()}
_PROTOCOLS: dict[str, Protocol] = {
    "application/x-protobuf": "http/protobuf",
    "application/json": "http/json",
}
_TEXT = "text/plain; charset=utf-8"


class _BadRequestError(Exception):
    """A request that cannot be understood, and the status that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class HttpServer:
    """Serves OTLP/HTTP from daemon threads, one a connection, until `close`."""

    def __init__(
        self,
        host: str,
        port: int,
        tls: Certificate | None,
        take: Take,
    ) -> None:
        self._server = _Server((host, port), take)
        if tls is not None:
            try:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(*tls)
            except BaseException:
                self._server.server_close()
                raise
            # The handshake is left to the connection's own thread: a silent client must not stop the others.
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="rlotel-receiver-http", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stops listening and cuts every connection, also those that wait for an answer."""
        self._server.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._server.cut_connections()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], take: Take) -> None:
        self.take = take
        self.closing = threading.Event()
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def cut_connections(self) -> None:
        """A client that keeps its connection open would be served by its thread for ever."""
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):
                    # Past TLS: its own shutdown would wait for the other side.
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Clients that hang up, time out or speak no TLS are what a receiver for failure tests sees all day.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        try:
            body = self._body()
            protocol, message = self._parse(body)
        except _BadRequestError as error:
            self._send(error.status, str(error).encode(), _TEXT)
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.take(protocol, headers, message)
        if self.server.closing.wait(None if reply.silent else reply.delay):
            self.close_connection = True
        elif reply.accepts(protocol):
            response = reply.response(message)
            if protocol == "http/json":
                self._send(reply.http_status, json.dumps(to_object(response)).encode(), "application/json")
            else:
                self._send(reply.http_status, response.SerializeToString(), "application/x-protobuf")
        else:
            self._send(reply.http_status, reply.message.encode(), _TEXT, reply)

    def _body(self) -> bytes:
        try:
            length = int(self.headers["Content-Length"] or "")
        except (TypeError, ValueError):
            self.close_connection = True
            raise _BadRequestError(411, "a Content-Length is required") from None
        if not 0 <= length <= MESSAGE_LIMIT_BYTES:
            self.close_connection = True
            raise _BadRequestError(413, f"at most {MESSAGE_LIMIT_BYTES} bytes")
        body = self.rfile.read(length)
        if len(body) < length:
            # Half a protobuf message may well be a valid one.
            raise ConnectionError("the client hung up within its request")
        return body

    def _parse(self, body: bytes) -> tuple[Protocol, ExportRequest]:
        kind = _PATHS.get(self.path)
        if kind is None:
            raise _BadRequestError(404, f"nothing at {self.path}; there is {', '.join(_PATHS)}")
        protocol = _PROTOCOLS.get(self.headers.get_content_type())
        if protocol is None:
            raise _BadRequestError(415, f"Content-Type must be one of {', '.join(_PROTOCOLS)}")
        body = _unpacked(body, self.headers.get("Content-Encoding", "identity"))
        try:
            if protocol == "http/json":
                return protocol, from_text(body, kind)
            return protocol, kind.FromString(body)
        except (DecodeError, ValueError) as error:
            raise _BadRequestError(400, f"no {kind.__name__}: {error}") from error

    def _send(self, status: int, body: bytes, content_type: str, reply: Reply | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if reply is not None and reply.retry_after is not None:
            self.send_header("Retry-After", str(reply.retry_after))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Says nothing: stderr belongs to the program around us."""


def _unpacked(body: bytes, encoding: str) -> bytes:
    if encoding == "identity":
        return body
    if encoding not in ("gzip", "deflate"):
        raise _BadRequestError(415, f"Content-Encoding {encoding} is not known; use gzip or deflate")
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)  # 32: gzip or zlib, by its header
    try:
        body = inflater.decompress(body, MESSAGE_LIMIT_BYTES)
    except zlib.error as error:
        raise _BadRequestError(400, f"broken {encoding}: {error}") from error
    if inflater.unconsumed_tail:
        raise _BadRequestError(413, f"at most {MESSAGE_LIMIT_BYTES} bytes unpacked")
    if not inflater.eof:
        raise _BadRequestError(400, f"broken {encoding}: cut short")
    return body
