"""The same phase as rlotel records it, written by hand on the OpenTelemetry SDK as one would without rlotel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span

from rlotel.semconv import metrics as m

IDENTITY = {"rl.run.id": "benchmark", "rl.system": "custom"}


class Nowhere(SpanExporter):
    """Takes spans and forgets them."""

    def export(self, spans: object) -> SpanExportResult:  # noqa: ARG002
        """Forget them."""
        return SpanExportResult.SUCCESS


class ByHand:
    """A tracer, a histogram and two counters."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider(
            [self.reader], exemplar_filter=AlwaysOffExemplarFilter(), shutdown_on_exit=False
        )
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(BatchSpanProcessor(Nowhere()))
        self.tracer = self.tracers.get_tracer("by hand")
        meter = self.meters.get_meter("by hand")
        self.duration = meter.create_histogram(
            m.TRAIN_DURATION.name, "s", explicit_bucket_boundaries_advisory=list(m.TRAIN_DURATION.buckets)
        )
        self.steps = meter.create_counter(m.TRAIN_STEPS.name)
        self.tokens = meter.create_counter(m.TRAIN_TOKENS.name)

    @contextmanager
    def train(self, batch_size: int) -> Iterator[Span]:
        """The learner's update."""
        began = time.perf_counter()
        attributes = {"rl.train.batch_size": batch_size, "rl.loop.iteration": 0}
        with self.tracer.start_as_current_span("rl.train", attributes=attributes) as span:
            try:
                yield span
            except BaseException as error:
                span.set_attribute("error.type", type(error).__qualname__)
                self.duration.record(
                    time.perf_counter() - began, {**IDENTITY, "error.type": type(error).__qualname__}
                )
                raise
        self.duration.record(time.perf_counter() - began, IDENTITY)

    def count(self, span: Span, steps: int, tokens: int) -> None:
        """What the update did."""
        span.set_attributes({"rl.train.steps": steps, "rl.train.tokens": tokens})
        self.steps.add(steps, IDENTITY)
        self.tokens.add(tokens, IDENTITY)

    def close(self) -> None:
        """Stop the threads."""
        self.tracers.shutdown()
        self.meters.shutdown()
