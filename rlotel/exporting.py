"""When telemetry is exported: the threads that do it, the reader of the metrics, the queue of the spans.

Our own rather than the SDK's periodic reader and batch processor, because those start threads in forked children,
which then send their parent's totals again, and take no notice of the time they are given to finish.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, detach, set_value
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics.export import AggregationTemporality, MetricReader, MetricsData
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.sdk.metrics.view import Aggregation

    from rlotel.delivery import Sender

SERVED = 0.2
"""Seconds that a span waits which ends what another process asked for: that one may now end both."""
FOR_THE_LAST = 0.3
"""Seconds kept for the last export itself, when it has to wait for its turn."""


class ExportThread:
    """A daemon thread that exports at an interval, when asked to, and one last time.

    Args:
        name: the thread's name.
        export: does it, until a moment of `time.monotonic` at the latest; says whether it arrived.
        interval: seconds between exports.
        first: seconds until the first one.
        spacing: seconds between the start of one that arrived and the start of the next, whatever is asked.
    """

    def __init__(
        self, name: str, export: Callable[[float], bool], *, interval: float, first: float, spacing: float
    ) -> None:
        self._export = export
        self._interval = interval
        self._spacing = spacing
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._asked = self._done = 0
        self._ok = True
        self._earliest = -math.inf
        self._close_by: float | None = None
        self._ended = False
        self._due = time.monotonic() + first
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def ours(self) -> bool:
        """Whether this is the process it was made in; in a forked child there is no thread."""
        return os.getpid() == self._pid

    def within(self, seconds: float) -> None:
        """Export in this time, whatever the interval; what comes until then goes with it."""
        with self._changed:
            if time.monotonic() + seconds < self._due:
                self._due = time.monotonic() + seconds
                self._changed.notify_all()

    @property
    def ended(self) -> bool:
        """Whether the last export is over, arrived or not."""
        return self._ended

    def ask(self, urgent_by: float = math.inf) -> int:
        """Ask for an export soon, without waiting for it.

        Args:
            urgent_by: when it must be over, on `time.monotonic`, even if it then comes too close to the last.

        Returns:
            What `wait` is to wait for.
        """
        if not self.ours:
            return 0
        with self._changed:
            self._asked += 1
            self._earliest = min(self._earliest, urgent_by - FOR_THE_LAST)
            self._changed.notify_all()
            return self._asked

    def wait(self, asked: int, deadline: float) -> bool:
        """Wait for an export that was asked for; True if it arrived before `deadline`."""
        if not self.ours:
            return False
        with self._changed:
            left = max(0.0, deadline - time.monotonic())
            return self._changed.wait_for(lambda: self._ended or self._done >= asked, left) and self._ok

    def begin_close(self, deadline: float) -> float:
        """Ask for the last export; it ends by `deadline` on `time.monotonic`.

        Returns:
            The deadline, a little later if the export before arrived so shortly ago that the last one could
            not keep its distance otherwise.
        """
        if not self.ours:
            return deadline
        with self._changed:
            if self._close_by is None:
                if deadline - time.monotonic() > self._spacing - FOR_THE_LAST:
                    deadline = max(deadline, self._earliest + FOR_THE_LAST)
                self._close_by = deadline
                self._changed.notify_all()
            return self._close_by

    def end_close(self, deadline: float) -> bool:
        """Wait for the last export until `deadline`; True if it arrived."""
        if not self.ours:
            return False
        with self._changed:
            finished = self._changed.wait_for(lambda: self._ended, max(0.0, deadline - time.monotonic()))
            return finished and self._ok

    def _run(self) -> None:
        # Whoever watches HTTP or gRPC in this process must not see ours as the program's.
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            while not self._once():
                pass
        finally:
            detach(token)

    def _once(self) -> bool:
        with self._changed:
            while (wait := self._next() - time.monotonic()) > 0:
                self._changed.wait(min(wait, threading.TIMEOUT_MAX))
            goal, close_by = self._asked, self._close_by
        started = time.monotonic()
        ok = False
        with contextlib.suppress(Exception):  # whatever it is, this thread lives on, and so does telemetry
            ok = self._export(math.inf if close_by is None else close_by)
        with self._changed:
            self._ok, self._done = ok, goal
            self._earliest = started + self._spacing if ok else -math.inf
            self._due = max(started + self._interval, time.monotonic())
            self._ended = close_by is not None
            self._changed.notify_all()
            return self._ended

    def _next(self) -> float:
        """When to export next."""
        if self._close_by is not None:
            return min(self._earliest, self._close_by - FOR_THE_LAST)
        return self._earliest if self._asked > self._done else max(self._due, self._earliest)


class Reader(MetricReader):
    """Collects all metrics and sends them, in its own thread."""

    def __init__(
        self,
        sender: Sender,
        interval: float,
        spacing: float,
        first: float,
        temporality: dict[type, AggregationTemporality],
        aggregation: dict[type, Aggregation],
    ) -> None:
        super().__init__(temporality, aggregation)
        self.sender = sender
        self._deadline = math.inf
        self._arrived = True
        self.thread = ExportThread("rlotel-metrics", self._export, interval=interval, first=first, spacing=spacing)

    def _export(self, deadline: float) -> bool:
        self._deadline, self._arrived = deadline, True
        try:
            self.collect()
        except Exception as error:  # noqa: BLE001 - a callback or the encoder; the next export tries again
            self.sender.delivery.lost(self.sender.destination, f"they cannot be collected: {error!r}")
            return False
        return self._arrived

    def _receive_metrics(
        self,
        metrics_data: MetricsData,
        timeout_millis: float = 10_000,  # noqa: ARG002 - our deadline holds
        **kwargs: Any,  # noqa: ARG002 - the SDK's signature
    ) -> None:
        self._arrived = self.sender.send(encode_metrics(metrics_data), self._deadline)

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Export now, or as soon as the distance to the last export allows."""
        return self.thread.wait(self.thread.ask(), time.monotonic() + timeout_millis / 1000)

    def shutdown(
        self,
        timeout_millis: float = 30_000,
        **kwargs: Any,  # noqa: ARG002 - the SDK's signature
    ) -> None:
        """Export one last time. A second call does nothing."""
        self.thread.end_close(self.thread.begin_close(time.monotonic() + timeout_millis / 1000))


class SpanQueue(SpanProcessor):
    """Keeps ended spans and sends them in batches, in its own thread; the oldest go when there are too many."""

    def __init__(self, sender: Sender, limits: SpanLimits) -> None:
        self.sender = sender
        self._limits = limits
        self._queue: deque[ReadableSpan] = deque(maxlen=limits.queue)
        self._dropped = 0
        self.thread = ExportThread(
            "rlotel-spans", self._export, interval=limits.delay, first=limits.delay, spacing=0.0
        )

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span; never waits."""
        if not (span.context and span.context.trace_flags.sampled and self.thread.ours):
            return
        if len(self._queue) == self._limits.queue:
            self._dropped += 1
        self._queue.append(span)
        if len(self._queue) == self._limits.batch:
            self.thread.ask()
        elif span.parent is not None and span.parent.is_remote:
            self.thread.within(SERVED)

    def _export(self, deadline: float) -> bool:
        if dropped := self._dropped:
            self._dropped = 0
            self.sender.delivery.dropped(self.sender.destination, dropped)
        arrived = True
        # Spans that end meanwhile wait for the next time, or this might never end.
        for _ in range(math.ceil(len(self._queue) / self._limits.batch)):
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), self._limits.batch))]
            if time.monotonic() < deadline:
                arrived &= self._send(batch, deadline)
            else:
                arrived = False
        return arrived

    def _send(self, batch: list[ReadableSpan], deadline: float) -> bool:
        try:
            request = encode_spans(batch)
        except Exception as error:  # noqa: BLE001 - a value that cannot be encoded costs one batch
            self.sender.delivery.lost(self.sender.destination, f"they cannot be encoded: {error!r}")
            return False
        return self.sender.send(request, deadline)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what has ended."""
        return self.thread.wait(self.thread.ask(), time.monotonic() + timeout_millis / 1000)

    def shutdown(self) -> None:
        """Send the rest. A second call does nothing."""
        self.thread.end_close(self.thread.begin_close(time.monotonic() + 30))


class SpanLimits:
    """How many spans wait and go at once: the `OTEL_BSP_*` variables, or the SDK's defaults for a bad one."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.queue = _positive(environ, "OTEL_BSP_MAX_QUEUE_SIZE", 2048)
        self.batch = min(_positive(environ, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512), self.queue)
        self.delay = _positive(environ, "OTEL_BSP_SCHEDULE_DELAY", 5000) / 1000


def _positive(environ: Mapping[str, str], variable: str, default: int) -> int:
    try:
        number = int(environ.get(variable) or default)
    except ValueError:
        return default
    return number if number > 0 else default
