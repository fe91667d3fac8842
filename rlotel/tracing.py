"""Spans: made as an interval begins where there is a tracer, else once there is one.

`rl.loop` is always the root of its trace, with a link to a host application's span if one was open. Its ids follow
from run, attempt and iteration, so that a process which can't be handed a `traceparent` arrives at them too.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
)

from rlotel.ids import Ids
from rlotel.phases import Interval, Loop, Phase
from rlotel.semconv import attributes as attr
from rlotel.semconv import spans

MOST_EARLY = 1000
"""Spans that may wait for a tracer."""


def root_ids(run_id: str, attempt: str, iteration: int) -> tuple[int, int]:
    """The ids of an iteration's trace and of its root, the same in every process of the run."""
    digest = hashlib.sha256(f"{run_id}\0{attempt}\0{iteration}".encode()).digest()
    return int.from_bytes(digest[:16], "big") or 1, int.from_bytes(digest[16:24], "big") or 1


class Tracing:
    """The spans of one process."""

    def __init__(self, run_id: Callable[[], str], attempt: str) -> None:
        self._run_id = run_id
        self.attempt = attempt
        """What tells one launch of the run from the next."""
        self.reset()

    def reset(self) -> None:
        """Forget the tracer and what waits for one."""
        self._tracer: Tracer | None = None
        self._ids: Ids | None = None
        self._early: deque[Callable[[Tracer], None]] = deque(maxlen=MOST_EARLY)

    def bind(self, tracer: Tracer, ids: Ids | None) -> None:
        """Make spans with `tracer` from now on; `ids` is None where a host's provider makes them."""
        self._tracer, self._ids = tracer, ids
        while self._early:
            self._early.popleft()(tracer)

    def begin_loop(self, loop: Loop, returns: int) -> None:
        """Start the root span of an iteration; `returns` counts how often one began that had been before."""
        if self._tracer is None:
            return
        host = trace.get_current_span().get_span_context()
        if self._ids is not None:
            self._ids.next_root(*self._root_ids(loop.iteration, returns))
        loop.span = self._tracer.start_span(
            spans.LOOP.name,
            context=Context(),
            attributes={attr.LOOP_ITERATION.name: loop.iteration},
            links=[Link(host)] if host.is_valid else [],
            start_time=loop.started_ns,
        )

    def join_loop(self, loop: Loop, returns: int) -> None:
        """Let a loop stand for the iteration that another process has the root span of."""
        if self._tracer is None or self._ids is None:
            return
        trace_id, span_id = self._root_ids(loop.iteration, returns)
        sampler = getattr(self._tracer, "sampler", None)  # decides here as it does there
        sampled = sampler is None or sampler.should_sample(None, trace_id, spans.LOOP.name).decision.is_sampled()
        flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
        loop.span = NonRecordingSpan(SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags))

    def _root_ids(self, iteration: int, returns: int) -> tuple[int, int]:
        attempt = f"{self.attempt}.{returns}" if returns else self.attempt
        return root_ids(self._run_id(), attempt, iteration)

    def begin_phase(self, phase: Phase) -> None:
        """Start a phase's span, as a child of what it is inside of."""
        if self._tracer is None:
            phase.outside = otel_context.get_current()
            return
        if phase.loop is not None and not phase.loop.may_have_span(phase.name):
            return
        # Outside of any loop the current context decides: a host's span, or a parent process's loop after a fork.
        inside = phase.inside.span if phase.inside is not None else None
        phase.span = self._tracer.start_span(
            phase.word.span.name,
            context=trace.set_span_in_context(inside) if inside is not None else None,
            attributes=phase.span_attributes,
            start_time=phase.started_ns,
        )

    def end(self, interval: Interval, end_ns: int) -> None:
        """End an interval's span; one that began before there was a tracer is made now, or once there is one."""
        if interval.span is not None:
            _finish(interval.span, interval, end_ns)
        elif isinstance(interval, Phase) and interval.loop is None:
            if self._tracer is None:
                self._early.append(lambda tracer: _make(tracer, interval, end_ns))
            else:
                _make(self._tracer, interval, end_ns)


def _make(tracer: Tracer, phase: Phase, end_ns: int) -> None:
    span = tracer.start_span(
        phase.word.span.name,
        attributes=phase.span_attributes,
        start_time=phase.started_ns,
        context=phase.outside or Context(),
    )
    _finish(span, phase, end_ns)


def _finish(span: Span, interval: Interval, end_ns: int) -> None:
    if isinstance(interval, Phase) and interval.results:
        span.set_attributes(interval.results)
    if interval.error:
        span.set_attribute(attr.ERROR_TYPE.name, interval.error)
        # The type only: an error's message may hold a prompt or a secret.
        span.set_status(Status(StatusCode.ERROR, interval.error))
    span.end(end_ns)
