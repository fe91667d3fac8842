"""The tracer and meter provider of a session, and everything from there to the collector.

They are the SDK's, made for us and never set globally: a host application's are left alone, and are used only when
the host hands them over.
"""

from __future__ import annotations

import math
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from opentelemetry.metrics import MeterProvider, NoOpMeterProvider
from opentelemetry.sdk import metrics as sdk_metrics
from opentelemetry.sdk import trace as sdk_trace
from opentelemetry.sdk.metrics.export import AggregationTemporality
from opentelemetry.sdk.metrics.view import (
    Aggregation,
    ExponentialBucketHistogramAggregation,
)
from opentelemetry.trace import NoOpTracerProvider, TracerProvider

from rlotel import endpoint
from rlotel.capture import CaptureFile, own_folder
from rlotel.delivery import Delivery, Sender
from rlotel.errors import log
from rlotel.exporting import ExportThread, Reader, SpanLimits, SpanQueue
from rlotel.ids import Ids
from rlotel.semconv import attributes as attr
from rlotel.transports import FileTransport, Transport, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.sdk.resources import Resource

    from rlotel.config import Config
    from rlotel.endpoint import Destination
    from rlotel.otlp_variables import Signal

SPACING = 5.0
"""Seconds: Google Cloud takes one point per series in this time."""
FIRST_EXPORT = 1.0
"""Seconds until the first export: early enough that a wrong endpoint shows at once, late enough that a program
which ends at once makes only one export, and needs no wait before it."""

_kept: list[Transport] = []
"""Transports that are open. A forked child must not destroy its copies: closing a gRPC channel waits for threads
that the child does not have."""


class Providers:
    """What a session records with. Made by `build` or `Providers.adopt`."""

    def __init__(
        self,
        tracer_provider: TracerProvider,
        meter_provider: MeterProvider,
        destinations: tuple[Destination, ...] = (),
        threads: tuple[ExportThread, ...] = (),
        senders: tuple[Sender, ...] = (),
    ) -> None:
        self.tracer_provider = tracer_provider
        self.meter_provider = meter_provider
        self.destinations = destinations
        """Where each signal goes."""
        self._threads = threads
        self._senders = senders
        self._closed = False

    @staticmethod
    def adopt(tracer_provider: TracerProvider, meter_provider: MeterProvider) -> Providers:
        """Use a host's providers. They are flushed, but never closed, and their exporters are the host's."""
        return _HostProviders(tracer_provider, meter_provider)

    def flush(self, timeout: float, *, urgent: bool = False) -> bool:
        """Export what was recorded, metrics as soon as their distance to the last export allows.

        Args:
            timeout: seconds it may take.
            urgent: the process may be gone afterwards, so the distance is given up if there is no time for it.

        Returns:
            Whether everything arrived within `timeout` seconds. It never takes longer.
        """
        deadline = time.monotonic() + timeout
        asked = [thread.ask(deadline if urgent else math.inf) for thread in self._threads]
        arrived = [thread.wait(ask, deadline) for thread, ask in zip(self._threads, asked, strict=True)]
        return all(arrived)

    def close(self, timeout: float) -> bool:
        """Export one last time and end. A second call does nothing.

        The last export of the metrics keeps its distance to the one before, if that arrived and `timeout` is
        long enough for it; it may then take a little more than `timeout`. Both signals go at the same time.

        Returns:
            Whether everything arrived within `timeout` seconds.
        """
        if self._closed:
            return True
        self._closed = True
        deadline = time.monotonic() + timeout
        for sender in self._senders:
            sender.hurry()
        deadlines = [thread.begin_close(deadline) for thread in self._threads]
        arrived = [thread.end_close(by) for thread, by in zip(self._threads, deadlines, strict=True)]
        if all(thread.ended for thread in self._threads):
            # Otherwise a thread may still be waiting in one, and nobody must wait for that.
            for sender in self._senders:
                sender.transport.close()
                if sender.transport in _kept:
                    _kept.remove(sender.transport)
        return all(arrived)


class _HostProviders(Providers):
    def flush(self, timeout: float, *, urgent: bool = False) -> bool:  # noqa: ARG002 - the host's distance
        """Ask both to flush, at the same time; the SDK takes no notice of the time it is given."""
        flushes: list[Callable[[], object]] = [
            flush
            for provider in (self.tracer_provider, self.meter_provider)
            if callable(flush := getattr(provider, "force_flush", None))
        ]
        deadline = time.monotonic() + timeout
        threads = [threading.Thread(target=_try, args=(flush,), daemon=True) for flush in flushes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def close(self, timeout: float) -> bool:
        """Flush; the host closes what is the host's."""
        if self._closed:
            return True
        self._closed = True
        return self.flush(timeout)


def _try(flush: Callable[[], object]) -> None:
    try:
        flush()
    except Exception:  # noqa: BLE001 - the host's own code
        log.debug("a provider of the host could not be flushed", exc_info=True)


def build(config: Config, resource: Resource, delivery: Delivery, environ: Mapping[str, str]) -> Providers:
    """Make the providers and start their threads.

    Raises:
        SettingError: where to send to cannot be understood. Nothing was started then.
    """
    destinations = endpoint.resolve_all(config, environ)
    for note in dict.fromkeys(filter(None, (destination.note for destination in destinations))):
        log.warning("rlotel: %s", note)
    transports = _transports(destinations, config, resource)
    senders = {
        destination.signal: Sender(destination, transport, delivery)
        for destination, transport in zip(destinations, transports, strict=True)
        if transport is not None
    }
    _kept.extend(sender.transport for sender in senders.values())
    threads: list[ExportThread] = []
    meter_provider: MeterProvider = NoOpMeterProvider()
    tracer_provider: TracerProvider = NoOpTracerProvider()
    if "metrics" in senders:
        reader = _reader(senders["metrics"], config, environ)
        meter_provider = _Meters(
            metric_readers=[reader],
            resource=resource,
            # Exemplars are drawn with the global `random`, which belongs to the training.
            exemplar_filter=sdk_metrics.AlwaysOffExemplarFilter(),
            shutdown_on_exit=False,
        )
        threads.append(reader.thread)
    if "traces" in senders:
        queue = SpanQueue(senders["traces"], SpanLimits(environ))
        tracers = _Tracers(resource=resource, id_generator=Ids(), shutdown_on_exit=False)
        tracers.add_span_processor(queue)
        tracer_provider = tracers
        threads.append(queue.thread)
    return Providers(tracer_provider, meter_provider, destinations, tuple(threads), tuple(senders.values()))


class _Meters(sdk_metrics.MeterProvider):
    def _handle_fork(self) -> None:
        """Not the SDK's: it looks for a new resource, with threads, in a child that makes providers of its own."""


class _Tracers(sdk_trace.TracerProvider):
    def _handle_fork(self) -> None:
        """As for the meters."""


def _transports(
    destinations: tuple[Destination, ...], config: Config, resource: Resource
) -> list[Transport | None]:
    captured = [destination.signal for destination in destinations if destination.kind == "capture"]
    local = _capture(config, resource, captured) if captured else None
    transports: list[Transport | None] = []
    for destination in destinations:
        if destination.kind == "off":
            transports.append(None)
        else:
            transports.append(local if destination.kind == "capture" else connect(destination))
    return transports


def _capture(config: Config, resource: Resource, signals: list[Signal]) -> Transport:
    if config.capture:
        path = Path(config.capture).expanduser()
    else:
        run = str(resource.attributes.get(attr.RUN_ID.name, "run"))
        safe = "".join(character if character.isalnum() or character in "-_." else "_" for character in run)
        path = own_folder() / f"{safe[:100]}-{os.getpid()}.jsonl"
    log.warning(
        "rlotel: no endpoint is set, so %s go to %s. Set RLOTEL_ENDPOINT=http://host:4318 to send them to a "
        "collector.",
        " and ".join(signals),
        path,
    )
    return FileTransport(CaptureFile(path))


def _reader(sender: Sender, config: Config, environ: Mapping[str, str]) -> Reader:
    interval = config.export_interval
    return Reader(
        sender,
        interval=interval,
        spacing=min(SPACING, interval),
        first=min(FIRST_EXPORT, interval),
        temporality=_temporality(environ),
        aggregation=_aggregation(environ),
    )


def _temporality(environ: Mapping[str, str]) -> dict[type, AggregationTemporality]:
    """What `OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE` asks for; cumulative unless it does."""
    variable = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
    preference = environ.get(variable, "").strip().lower() or "cumulative"
    delta: set[type] = set()
    if preference == "delta":
        delta = {sdk_metrics.Counter, sdk_metrics.Histogram, sdk_metrics.ObservableCounter}
    elif preference == "lowmemory":
        delta = {sdk_metrics.Counter, sdk_metrics.Histogram}
    elif preference != "cumulative":
        log.warning("rlotel: %s=%s is unknown; cumulative is used", variable, preference)
    return dict.fromkeys(delta, AggregationTemporality.DELTA)


def _aggregation(environ: Mapping[str, str]) -> dict[type, Aggregation]:
    variable = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"
    kind = environ.get(variable, "").strip().lower() or "explicit_bucket_histogram"
    if kind == "base2_exponential_bucket_histogram":
        return {sdk_metrics.Histogram: ExponentialBucketHistogramAggregation()}
    if kind != "explicit_bucket_histogram":
        log.warning("rlotel: %s=%s is unknown; explicit_bucket_histogram is used", variable, kind)
    return {}
