"""The providers keep the time they are given, their distance, and everybody else's providers alone."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rlotel import providers
from rlotel.config import resolve
from rlotel.delivery import Delivery
from rlotel.providers import Providers
from rlotel.receiver import Receiver, Reply
from rlotel.semconv import Metric
from tests.export.conftest import Program

PROTOCOLS = ["grpc", "http/protobuf"]


def environment(receiver: Receiver, protocol: str = "http/protobuf", interval: float = 0.2) -> dict[str, str]:
    url = receiver.grpc_endpoint if protocol == "grpc" else receiver.http_endpoint
    return {
        "RLOTEL_ENDPOINT": url,
        "RLOTEL_PROTOCOL": protocol,
        "RLOTEL_EXPORT_INTERVAL": str(interval),
    }


def ignore(metric: Metric, value: float, attributes: Mapping[str, str]) -> None:
    """Nothing is counted here."""


@contextmanager
def built(environ: Mapping[str, str]) -> Iterator[Providers]:
    made = providers.build(resolve({}, environ), Resource({"service.name": "x"}), Delivery(ignore), environ)
    try:
        yield made
    finally:
        made.close(2)


def add(made: Providers, amount: float) -> None:
    made.meter_provider.get_meter("test").create_counter("c").add(amount)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_was_recorded_last_arrives_when_they_are_closed(receiver: Receiver, protocol: str) -> None:
    with built(environment(receiver, protocol)) as made:
        add(made, 1.0)
        assert made.flush(5)
        add(made, 2.0)
        made.tracer_provider.get_tracer("t").start_span("last").end()
        assert made.close(5)
        assert receiver.capture.points("c")[-1].value == 3.0
        assert [span.name for span in receiver.capture.spans()] == ["last"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_collector_that_never_answers_holds_neither_a_flush_nor_the_close(
    receiver: Receiver, protocol: str
) -> None:
    receiver.reply = Reply(silent=True)
    with built(environment(receiver, protocol)) as made:
        add(made, 1.0)
        made.tracer_provider.get_tracer("t").start_span("s").end()
        start = time.monotonic()
        assert not made.flush(0.5)
        flushed = time.monotonic()
        assert not made.close(0.5)
        closed = time.monotonic()
    assert flushed - start < 1.5
    assert closed - flushed < 1.5


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_connection_is_left_behind_where_nothing_arrived(receiver: Receiver, protocol: str) -> None:
    port = receiver.grpc_port if protocol == "grpc" else receiver.http_port

    def connected() -> bool:
        tables = (Path(f"/proc/self/net/{table}").read_text() for table in ("tcp", "tcp6"))
        return any(f":{port:04X} 01 " in table for table in tables)  # 01: established

    receiver.reply = Reply(http_status=403)
    with built(environment(receiver, protocol)) as made:
        add(made, 1.0)
        assert not made.flush(5)
        assert connected()
    deadline = time.monotonic() + 10
    while connected():
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)


@pytest.mark.parametrize("close", [False, True])
def test_two_exports_keep_their_distance(receiver: Receiver, close: bool) -> None:
    with built(environment(receiver, interval=0.6)) as made:
        add(made, 1.0)
        for _ in range(3):
            assert made.flush(5)
        if close:
            made.close(5)
        times = [point.time_ns / 1e9 for point in receiver.capture.points("c")]
    assert len(times) >= 3 + close
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.59


def test_an_urgent_flush_gives_the_distance_up_rather_than_the_data(receiver: Receiver) -> None:
    with built(environment(receiver, interval=60)) as made:
        add(made, 1.0)
        assert made.flush(5)
        add(made, 2.0)
        assert not made.flush(0.4)
        assert made.flush(1, urgent=True)
        assert [point.value for point in receiver.capture.points("c")] == [1.0, 3.0]


def test_the_first_export_comes_by_itself_long_before_the_interval(receiver: Receiver) -> None:
    with built(environment(receiver, interval=600)) as made:
        add(made, 1.0)
        assert receiver.wait_for(lambda captured: bool(captured.points("c")), 10)


def test_temporality_is_cumulative_unless_asked_otherwise(receiver: Receiver) -> None:
    preference = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
    for word, expected in (("", [1.0, 3.0]), ("delta", [1.0, 2.0])):
        receiver.clear()
        with built({**environment(receiver), preference: word}) as made:
            add(made, 1.0)
            assert made.flush(5)
            add(made, 2.0)
            assert made.flush(5)
        values = [point.value for point in receiver.capture.points("c")]
        assert [
            value for value, before in zip(values, [None, *values], strict=False) if value != before
        ] == expected


def test_a_sampler_of_the_environment_is_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with built(environment(receiver)) as made:
        made.tracer_provider.get_tracer("t").start_span("s").end()
        assert made.flush(5)
    assert receiver.capture.spans() == []


def test_more_spans_than_the_queue_holds_are_dropped_and_said(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    limits = {"OTEL_BSP_MAX_QUEUE_SIZE": "10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "10"}
    receiver.reply = Reply(delay=0.5)
    with built({**environment(receiver), **limits}) as made:
        tracer = made.tracer_provider.get_tracer("t")
        for number in range(100):
            tracer.start_span(str(number)).end()
        made.flush(5)
        receiver.reply = Reply()
        made.flush(5)
    assert "99" in {span.name for span in receiver.capture.spans()}
    assert "spans were dropped" in caplog.text


def test_many_spans_go_in_batches_and_all_arrive(receiver: Receiver) -> None:
    with built({**environment(receiver), "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "100"}) as made:
        tracer = made.tracer_provider.get_tracer("t")
        for _ in range(1000):
            tracer.start_span("s").end()
        assert made.flush(5)
    assert len(receiver.capture.spans()) == 1000
    assert sum(request.signal == "traces" for request in receiver.requests) >= 10


def test_a_signal_that_is_off_has_no_thread_and_sends_nothing(receiver: Receiver) -> None:
    off = {"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none"}
    before = threading.active_count()
    with built({**environment(receiver), **off}) as made:
        add(made, 1.0)
        made.tracer_provider.get_tracer("t").start_span("s").end()
        assert threading.active_count() == before
        assert made.flush(1)
    assert receiver.requests == []


def test_no_exemplars_are_kept(receiver: Receiver) -> None:
    with built(environment(receiver)) as made:
        with made.tracer_provider.get_tracer("t").start_as_current_span("s"):
            made.meter_provider.get_meter("t").create_histogram("h").record(1.0)
        assert made.flush(5)
    assert receiver.capture.points("h")
    assert b"exemplar" not in b"".join(str(request.message).encode() for request in receiver.requests)


def test_nothing_is_set_globally(receiver: Receiver) -> None:
    before = trace.get_tracer_provider(), metrics.get_meter_provider()
    with built(environment(receiver)):
        assert (trace.get_tracer_provider(), metrics.get_meter_provider()) == before


def test_a_hosts_providers_are_flushed_but_never_closed() -> None:
    exporter = InMemorySpanExporter()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=60_000))
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    try:
        adopted = Providers.adopt(tracers, meters)
        adopted.tracer_provider.get_tracer("t").start_span("one").end()
        assert adopted.flush(5)
        assert adopted.close(5)
        tracers.get_tracer("t").start_span("two").end()
        tracers.force_flush()
        assert [span.name for span in exporter.get_finished_spans()] == ["one", "two"]
    finally:
        tracers.shutdown()
        meters.shutdown()


SEEDED = """
import random
random.seed(42)
from rlotel.ids import Ids
ids = Ids()
print(ids.generate_trace_id(), ids.generate_span_id(), random.random())
"""


def test_processes_with_the_same_seed_have_ids_of_their_own(program: type[Program]) -> None:
    programs = [program(SEEDED, {}) for _ in range(2)]
    (trace_a, span_a, random_a), (trace_b, span_b, random_b) = (p.end().out.split() for p in programs)
    assert trace_a != trace_b
    assert span_a != span_b
    assert random_a == random_b


FORKING = """
import os, sys
from opentelemetry.sdk.resources import Resource
from rlotel import providers
from rlotel.config import resolve
from rlotel.delivery import Delivery

def build():
    config = resolve({}, os.environ)
    return providers.build(config, Resource({"pid": os.getpid()}), Delivery(lambda *_: None), os.environ)

def add(made, amount):
    made.meter_provider.get_meter("test").create_counter("c").add(amount)
    made.tracer_provider.get_tracer("t").start_span(str(amount)).end()

made = build()
add(made, 10.0)
made.flush(5)
if os.fork() == 0:
    add(made, 100.0)  # nobody will ever export this: it is in the parent's providers
    made.flush(1)
    made.close(1)
    own = build()
    add(own, 1.0)
    arrived = own.close(5)
    sys.exit(0 if arrived else 9)
code = os.waitstatus_to_exitcode(os.wait()[1])
made.close(5)
print("child", code)
"""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_forked_child_sends_only_what_is_its_own(
    receiver: Receiver, program: type[Program], protocol: str
) -> None:
    ended = program(FORKING, environment(receiver, protocol)).end()
    assert (ended.code, ended.out) == (0, "child 0\n"), ended.err
    latest = {point.resource["pid"]: point.value for point in receiver.capture.points("c")}
    assert sorted(value or 0.0 for value in latest.values()) == [1.0, 10.0]
    assert sorted(span.name for span in receiver.capture.spans()) == ["1.0", "10.0"]
