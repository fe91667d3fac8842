"""Servers that are no collector: what they answer neither stops the export nor passes for success."""

import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from opentelemetry.sdk.resources import Resource

from rlotel import providers
from rlotel.config import resolve
from rlotel.delivery import Delivery
from rlotel.semconv import Metric

Answer = Callable[[socket.socket], None]


def without_end(pause: float, piece: bytes) -> Answer:
    def answer(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            connection.sendall(piece)
            threading.Event().wait(pause)

    return answer


def web_page(connection: socket.socket) -> None:
    page = b"<html>Please log in</html>"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % len(page)
    connection.sendall(head + page)


@contextmanager
def server(answer: Answer) -> Iterator[int]:
    """A server on a port of its own that gives every request the same answer."""

    def serve(connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as stream:
                while head := b"".join(iter(stream.readline, b"\r\n")):
                    length = re.search(rb"(?i)content-length: (\d+)", head)
                    stream.read(int(length[1]) if length else 0)
                    answer(connection)
        except OSError:
            pass  # the client has closed it

    def listen() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=listen, daemon=True).start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (without_end(0.05, b"x"), "its answer does not end in time"),
        (web_page, "it answers with a web page"),
    ],
    ids=["slow", "web page"],
)
def test_an_answer_that_is_none_is_a_failure_and_said(
    answer: Answer, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert exported(answer) == (False, 2)
    assert said in caplog.text


def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    assert exported(without_end(0, b"x" * 10_000)) == (True, 0)


def exported(answer: Answer) -> tuple[bool, int]:
    """Whether both signals arrived within 20 s, and how many failures were counted."""
    failures = 0

    def count(metric: Metric, value: float, attributes: Mapping[str, str]) -> None:
        nonlocal failures
        failures += 1

    with server(answer) as port:
        environ = {"RLOTEL_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
        built = providers.build(resolve({}, environ), Resource({}), Delivery(count), environ)
        try:
            built.meter_provider.get_meter("test").create_counter("c").add(1)
            built.tracer_provider.get_tracer("test").start_span("s").end()
            arrived = built.flush(20)
            return arrived, failures
        finally:
            built.close(0)
