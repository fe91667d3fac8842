"""A run told over again: the recorder of a session, with a clock that stands where the log does.

What comes out has the times of the log, and ids that follow from the run, so that the same import twice sends the
same telemetry twice.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rlotel.config import Config
from rlotel.errors import Faults
from rlotel.identity import Identity
from rlotel.ids import Ids
from rlotel.importing.records import Logged
from rlotel.instruments import Instruments
from rlotel.logged.rows import Rows
from rlotel.logged.tables import Table
from rlotel.opened import SCHEMA_URL, SCOPE
from rlotel.process import Process
from rlotel.providers import SPACING
from rlotel.recorder import Recorder
from rlotel.tracing import Tracing
from rlotel.transports import Request
from rlotel.version import __version__

ATTEMPT = "import"
"""What trace ids are made of where a session has its launch."""
BATCH = 512
"""Spans of one request."""


class _Clock:
    """Stands at the time of the log, in seconds from its beginning: those since 1970 are too large to be exact."""

    def __init__(self, began: float) -> None:
        self._began_ns = round(began * 1e9)
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def wall_ns(self) -> int:
        return self._began_ns + round(self.now * 1e9)


class _Ids(Ids):
    """Ids that follow from the run, one after the other."""

    def __init__(self, run_id: str) -> None:
        super().__init__()
        self._run_id = run_id
        self._count = 0

    def _draw(self, bits: int) -> int:
        self._count += 1
        digest = hashlib.sha256(f"{self._run_id}\0{self._count}".encode()).digest()
        return int.from_bytes(digest[: bits // 8], "big") or 1


@dataclass
class Sent:
    """How much telemetry was made."""

    points: int = 0
    spans: int = 0
    names: set[str] = field(default_factory=set)
    """Of metrics."""


class Replay:
    """One run that is told over again.

    Args:
        config: settings of the run, its id among them.
        resource: of all telemetry.
        identity: of the run, settled.
        table: what the keys mean.
        began: when the first of it was logged.
        send: takes each request, with the time of the latest of it.
        since: what is older is counted, and not sent.
    """

    def __init__(
        self,
        config: Config,
        resource: Resource,
        identity: Identity,
        table: Table,
        began: float,
        send: Callable[[Request, float], None],
        since: float = -math.inf,
    ) -> None:
        self.sent = Sent()
        self.faults: list[tuple[str, Exception]] = []
        self._send = send
        self._since = since
        self._began = began
        # The counters' zero lies before the first that is counted, as far off as points must be.
        self._pointed = -SPACING
        self._clock = _Clock(began)
        self._reader = InMemoryMetricReader()
        self._spans = InMemorySpanExporter()
        faults = Faults(lambda place, error: self.faults.append((place, error)))
        self._instruments = Instruments(faults)
        tracing = Tracing(lambda: identity.run_id, ATTEMPT)
        recorder = Recorder(
            config,
            identity,
            self._instruments,
            tracing,
            faults,
            self._clock,
            Process(launcher=True, rank=0, attempt=ATTEMPT, handover=dict, flush=lambda _seconds: True),
            freeze=lambda: None,
            stir=lambda: None,
            settle=lambda: None,
        )
        self._bind(resource, identity, tracing)
        self.rows = Rows(table, recorder, finished=self._finished)
        self._point(self._pointed)

    def _bind(self, resource: Resource, identity: Identity, tracing: Tracing) -> None:
        meters = MeterProvider(
            [self._reader], resource, exemplar_filter=AlwaysOffExemplarFilter(), shutdown_on_exit=False
        )
        ids = _Ids(identity.run_id)
        tracers = TracerProvider(resource=resource, id_generator=ids, shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._instruments.bind(meters.get_meter(SCOPE, __version__, schema_url=SCHEMA_URL), identity.freeze())
        self._instruments.start_at_zero("loop")
        tracing.bind(tracers.get_tracer(SCOPE, __version__, schema_url=SCHEMA_URL), ids)

    def take(self, logged: Logged) -> None:
        """What was logged next."""
        # The step before ends at the time it had, so the clock is put forward only afterwards.
        at = logged.time - self._began
        self.rows.log(logged.values, logged.step, at=at, whole=logged.whole)
        self._clock.now = max(self._clock.now, at)

    def end(self) -> None:
        """That was all."""
        self.rows.finish()
        if self._clock.now > self._pointed:
            self._point(max(self._clock.now, self._pointed + SPACING))
        self._flush_spans(1)

    def _finished(self, ended: float) -> None:
        if ended >= self._pointed + SPACING:
            self._point(ended)
        self._flush_spans(BATCH)

    def _point(self, at: float) -> None:
        """Send all metrics as they are, as of a moment. Google Cloud takes one point per series in 5 s."""
        self._pointed = at
        if self._began + at < self._since:
            self._instruments.drain()
            return
        data = self._reader.get_metrics_data()
        if data is None:
            return
        request = encode_metrics(data)
        self._date(request, self._clock.wall_ns() + round((at - self._clock.now) * 1e9))
        self._send(request, self._began + at)

    def _date(self, request: ExportMetricsServiceRequest, at: int) -> None:
        started = round((self._began - 2 * SPACING) * 1e9)
        scopes = (scope for resource in request.resource_metrics for scope in resource.scope_metrics)
        for metric in (metric for scope in scopes for metric in scope.metrics):
            kind = str(metric.WhichOneof("data"))
            points = getattr(metric, kind).data_points
            self.sent.names.add(metric.name)
            self.sent.points += len(points)
            for point in points:
                point.time_unix_nano = at
                if kind != "gauge":
                    point.start_time_unix_nano = started

    def _flush_spans(self, least: int) -> None:
        ended = self._spans.get_finished_spans()
        if len(ended) < least:
            return
        self._spans.clear()
        wanted = [span for span in ended if (span.end_time or 0) / 1e9 >= self._since]
        if wanted:
            self.sent.spans += len(wanted)
            self._send(encode_spans(wanted), max(span.end_time or 0 for span in wanted) / 1e9)
