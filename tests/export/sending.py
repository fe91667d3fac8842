"""What the tests of delivery share: providers that send one counter and one span, and what is said of it."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from opentelemetry.sdk.resources import Resource

from rlotel import providers
from rlotel.capture import Capture
from rlotel.config import resolve
from rlotel.delivery import Delivery
from rlotel.providers import Providers
from rlotel.receiver import Receiver
from rlotel.semconv import Metric
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m

PROTOCOLS = ["grpc", "http/protobuf"]
TOKEN = "Bearer t0ken"


@dataclass
class Failures:
    """How often the export of each signal is counted as failed."""

    counted: dict[str, int] = field(default_factory=lambda: {"metrics": 0, "traces": 0})

    def count(self, metric: Metric, value: float, attributes: Mapping[str, str]) -> None:
        assert metric is m.RLOTEL_EXPORT_FAILURES
        self.counted[attributes[attr.RLOTEL_EXPORT_SIGNAL.name]] += int(value)


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


@contextmanager
def free_port() -> Iterator[int]:
    """A port that nothing listens on, and nothing else takes."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def lines(caplog: pytest.LogCaptureFixture, signal: str) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "rlotel" and f" {signal} " in r.getMessage()]
