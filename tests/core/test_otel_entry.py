"""rlotel under OpenTelemetry's own command, and as an instrumentor that a program calls."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from rlotel.receiver import Receiver

LOOP = """
import rlotel
with rlotel.loop(iteration=1):
    with rlotel.train() as train:
        train.add(steps=1)
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def ended(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "RLOTEL_", "PYTHONPATH"))
    }
    return subprocess.run(command, env={**own, **environ}, capture_output=True, text=True, timeout=60, check=False)


def instrumented(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return ended(str(Path(sysconfig.get_path("scripts")) / "opentelemetry-instrument"), *command, **environ)


def test_opentelemetry_finds_the_instrumentor_and_it_asks_for_no_library() -> None:
    (entry,) = entry_points(group="opentelemetry_instrumentor", name="rlotel")
    assert list(entry.load()().instrumentation_dependencies()) == []


def test_opentelemetrys_command_does_the_same_as_the_one_line(receiver: Receiver) -> None:
    result = instrumented(
        sys.executable,
        "-c",
        LOOP,
        OTEL_EXPORTER_OTLP_ENDPOINT=receiver.http_endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        RLOTEL_RUN_ID="r1",
    )
    assert (result.returncode, result.stdout) == (0, "")
    assert "rlotel" not in result.stderr
    assert [span.attributes["rl.loop.iteration"] for span in receiver.capture.spans("rl.loop")] == [1]
    (steps,) = receiver.capture.latest("rl.train.steps")
    assert (steps.value, steps.attributes["rl.run.id"]) == (1, "r1")


def test_what_is_wrong_is_one_line_and_the_program_and_other_instrumentations_go_on(receiver: Receiver) -> None:
    result = instrumented(
        sys.executable,
        "-c",
        "from opentelemetry import trace; print(type(trace.get_tracer_provider()).__module__)",
        OTEL_EXPORTER_OTLP_ENDPOINT=receiver.http_endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        RLOTEL_GPUS="none",
    )
    assert (result.returncode, result.stdout) == (0, "opentelemetry.sdk.trace\n")
    assert [
        line for line in result.stderr.splitlines() if "rlotel is not started" in line and "RLOTEL_GPUS" in line
    ]
    assert "Traceback" not in result.stderr


def test_it_can_be_disabled_as_every_instrumentation(receiver: Receiver) -> None:
    result = instrumented(
        sys.executable,
        "-c",
        LOOP,
        OTEL_EXPORTER_OTLP_ENDPOINT=receiver.http_endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="rlotel",
    )
    assert result.returncode == 0
    assert receiver.capture.spans("rl.loop") == []


@pytest.mark.parametrize(
    ("said", "url"),
    [
        ({}, "http://no-such-host.invalid:4318/v1/metrics "),
        ({"RLOTEL_PROTOCOL": "grpc"}, "http://no-such-host.invalid:4318 "),
    ],
)
@pytest.mark.parametrize("variable", ["RLOTEL_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"])
def test_the_port_of_http_outweighs_grpc_that_only_opentelemetrys_command_sets(
    variable: str, said: dict[str, str], url: str
) -> None:
    result = instrumented(sys.executable, "-c", LOOP, **{variable: "http://no-such-host.invalid:4318"}, **said)
    assert result.returncode == 0
    assert f"rlotel: metrics do not reach {url}" in result.stderr


GIVEN = (
    """
import json
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rlotel.otel_entry import RlotelInstrumentor

spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
tracer_provider, meter_provider = TracerProvider(), MeterProvider([reader])
tracer_provider.add_span_processor(SimpleSpanProcessor(spans))
instrumentor = RlotelInstrumentor()
instrumentor.instrument(tracer_provider=tracer_provider, meter_provider=meter_provider)
"""
    + LOOP
    + """
instrumentor.uninstrument()
"""
    + LOOP
    + """
print(json.dumps([span.name for span in spans.get_finished_spans()]))
"""
)


def test_providers_that_are_given_are_used_until_it_is_uninstrumented() -> None:
    result = ended(sys.executable, "-c", GIVEN)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout) == ["rl.train", "rl.loop"]


def test_half_of_the_providers_is_said_and_its_own_are_used(receiver: Receiver) -> None:
    program = GIVEN.replace("tracer_provider=tracer_provider, ", "")
    result = ended(sys.executable, "-c", program, RLOTEL_ENDPOINT=receiver.http_endpoint)
    assert (result.returncode, json.loads(result.stdout)) == (0, [])
    assert "only one of tracer_ and meter_provider" in result.stderr
    assert len(receiver.capture.spans("rl.loop")) == 1
