"""For tests: what a run reports, in memory, with a clock that stands still and ids that count.

```python
from rlotel.testing import telemetry  # a pytest fixture


def test_my_loop(telemetry):
    my_training_loop(iterations=2)
    assert telemetry.value("rl.train.steps") == 8
    assert [span.name for span in telemetry.spans()] == ["rl.train", "rl.loop", "rl.train", "rl.loop"]
```

An error inside rlotel, which training would never see, is raised at the end of the test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rlotel import semconv, session
from rlotel.capture import Capture, Point, SpanRecord
from rlotel.config import resolve
from rlotel.conformance import nearest
from rlotel.delivery import Delivery
from rlotel.ids import Ids
from rlotel.opened import Session
from rlotel.otlp_records import Value, flatten
from rlotel.providers import Providers
from rlotel.semconv.types import Metric, Span

START_NS = 1_700_000_000_000_000_000
"""Where the clock of a test begins: nanoseconds since 1970."""


class StillClock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self._ns = 0

    def monotonic(self) -> float:
        """Seconds since the test began."""
        return self._ns / 1e9

    def wall_ns(self) -> int:
        """Nanoseconds since 1970."""
        return START_NS + self._ns

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._ns += round(seconds * 1e9)


class CountingIds(Ids):
    """Span and trace ids that count from 1; the trace of a loop still follows from run, attempt and iteration."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def _draw(self, bits: int) -> int:  # noqa: ARG002 - there are never so many that they would not fit
        self._count += 1
        return self._count


class Telemetry:
    """What the code under test has reported so far. Every look collects anew, as an export would."""

    def __init__(self) -> None:
        self.clock = StillClock()
        """What every duration and timestamp is read from."""
        self.errors: list[tuple[str, Exception]] = []
        """Errors inside rlotel, as (place, error). Clear it in a test that is about them."""
        self._reader = InMemoryMetricReader()
        self._spans = InMemorySpanExporter()
        self.session: Session
        """The open session."""

    def points(self, metric: Metric | str | None = None, /, **match: Value) -> list[Point]:
        """The points that an export would send now, of one metric or all.

        Raises:
            LookupError: the model has no metric of that name.
        """
        if isinstance(metric, str) and metric not in semconv.metrics.BY_NAME:
            near = " or ".join(nearest(metric, semconv.metrics.BY_NAME))
            raise LookupError(f"there is no metric {metric}" + (f"; did you mean {near}?" if near else ""))
        return self.capture().points(metric, **match)

    def value(self, metric: Metric | str, /, **match: Value) -> float | None:
        """The value of the one point that matches, or None if there is none; the sum for a histogram.

        Raises:
            LookupError: several points match; say which one. Or the model has no metric of that name.
        """
        points = self.points(metric, **match)
        if len(points) > 1:
            raise LookupError(f"{metric} has {len(points)} points: {[point.attributes for point in points]}")
        if not points:
            return None
        return points[0].sum if points[0].kind == "histogram" else points[0].value

    def spans(self, name: Span | str | None = None, /, **match: Value) -> list[SpanRecord]:
        """The spans that have ended so far, in that order."""
        return self.capture().spans(name, **match)

    def capture(self) -> Capture:
        """Points and spans as one capture, to search or to build traces of."""
        points: tuple[Point, ...] = ()
        self.session.flush(0)  # settles the identity, as the first export does
        data = self._reader.get_metrics_data()
        if data is not None:
            points = tuple(flatten(encode_metrics(data))[0])
        return Capture(points, tuple(flatten(encode_spans(self._spans.get_finished_spans()))[1]))

    def providers(self, resource: Resource, _delivery: Delivery) -> Providers:
        """What the session records with: nothing leaves the process."""
        meters = MeterProvider(
            [self._reader], resource, exemplar_filter=AlwaysOffExemplarFilter(), shutdown_on_exit=False
        )
        tracers = TracerProvider(resource=resource, id_generator=CountingIds(), shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        return Providers(tracers, meters)


@contextmanager
def captured(environ: Mapping[str, str] | None = None, **settings: Any) -> Iterator[Telemetry]:
    """Open a session whose telemetry stays in memory, and close it again.

    Args:
        environ: the variables that settings are read from, instead of the process's; none by default.
        **settings: arguments of `rlotel.instrument()`.

    Raises:
        AssertionError: at the end, if an error happened inside rlotel.
    """
    if session.recorder() is not None:
        raise RuntimeError("a session is open already: call rlotel.uninstrument() before the test")
    seen = Telemetry()
    environ = environ or {}
    # Without GPUs unless they are asked for: a test is seldom about the machine it runs on.
    config = resolve({"run_id": "test", "gpu": False, **settings}, environ)
    opened = session.open_session(
        config, environ, seen.clock, seen.providers, lambda place, error: seen.errors.append((place, error))
    )
    seen.session = opened
    opened.tracing.attempt = "test"  # so that the trace ids are the same at every run
    try:
        yield seen
    finally:
        opened.close()
    if seen.errors:
        place, error = seen.errors[0]
        raise AssertionError(f"an error inside rlotel, in {place}: {error!r}") from error


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    """The telemetry of the code under test."""
    with captured() as seen:
        yield seen
