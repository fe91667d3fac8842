"""What goes with a call into another process: the span it belongs to, and whose run it is.

A carrier is a small dictionary of strings. It holds the W3C `traceparent`, which anyone's propagator understands,
the identity of the run, so that a worker's first point already bears the labels of the loop it works for, and what
the call is for, so that a worker can tell rollouts of one iteration from those of another or of an evaluation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from rlotel import context, gates
from rlotel.phases import Interval, Loop, Phase
from rlotel.semconv.attributes import PhaseName

TRACEPARENT = "traceparent"
IDENTITY = "rlotel.identity"
ITERATION = "rlotel.iteration"
EVALUATES = "rlotel.evaluates"

_ERRAND_KEY = otel_context.create_key("rlotel-errand")
_IDENTITY_KEY = otel_context.create_key("rlotel-identity")


@dataclass(frozen=True)
class Errand:
    """What a call is for."""

    iteration: int | None = None
    """The iteration that it is made in."""
    evaluates: bool = False
    """Whether it is made in an evaluation, whose rollouts are none of training."""


def outgoing(around: Interval | None, identity: str | None) -> dict[str, str] | None:
    """The carrier of a call that is made now, or None if there is nothing to tell.

    Args:
        around: the loop or phase that the call is made in.
        identity: this process's identity as JSON, if it is settled; else one that arrived is passed on.
    """
    span = _span(around)
    if span is None or not span.is_valid:
        return None
    carrier = {TRACEPARENT: f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"}
    identity = identity or _arrived()
    if identity:
        carrier[IDENTITY] = identity
    errand = arrived_errand() if around is None else _errand(around)
    if errand.iteration is not None:
        carrier[ITERATION] = str(errand.iteration)
    if errand.evaluates:
        carrier[EVALUATES] = "true"
    return carrier


def _errand(around: Interval) -> Errand:
    loop = around if isinstance(around, Loop) else around.loop
    iteration = loop.iteration if isinstance(loop, Loop) else None
    while isinstance(around, Phase):
        if around.name == PhaseName.EVALUATE.value:
            return Errand(iteration, evaluates=True)
        if around.inside is None:
            break
        around = around.inside
    return Errand(iteration)


def _span(around: Interval | None) -> SpanContext | None:
    while around is not None:
        if around.span is not None:
            return around.span.get_span_context()
        # A phase beyond the number of spans that a loop may have belongs to what it is inside of.
        around = around.inside if isinstance(around, Phase) else None
    return trace.get_current_span().get_span_context()


def _arrived() -> str | None:
    value = otel_context.get_value(_IDENTITY_KEY)
    return value if isinstance(value, str) else None


def arrived_identity() -> Mapping[str, str]:
    """The identity, by attribute name, that came with the call that is being served here; empty if none did."""
    try:
        found = json.loads(_arrived() or "{}")
    except (ValueError, RecursionError):
        return {}
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def arrived_errand() -> Errand:
    """What the call that is being served here is for, as far as it said."""
    found = otel_context.get_value(_ERRAND_KEY)
    return found if isinstance(found, Errand) else Errand()


class Arrival:
    """Serves one call in the context that it brought, as a `with` block. Neither end raises."""

    __slots__ = ("_carrier", "_entered")

    def __init__(self, carrier: object) -> None:
        self._carrier = carrier
        self._entered: context.Entered | None = None

    def __enter__(self) -> None:
        if not isinstance(self._carrier, dict):
            return
        span = _parse(self._carrier.get(TRACEPARENT))
        if span is None:
            return
        there = trace.set_span_in_context(NonRecordingSpan(span))
        identity = self._carrier.get(IDENTITY)
        if isinstance(identity, str):
            there = otel_context.set_value(_IDENTITY_KEY, identity, there)
        errand = Errand(_iteration(self._carrier.get(ITERATION)), evaluates=self._carrier.get(EVALUATES) == "true")
        there = otel_context.set_value(_ERRAND_KEY, errand, there)
        self._entered = context.arrive(there)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._entered is not None:
            context.leave(self._entered)
            self._entered = None


def _iteration(number: Any) -> int | None:
    """An iteration's number as it was written; None if it is none, or none that a span takes."""
    try:
        return gates.integer(int(number))
    except (TypeError, ValueError, gates.Refused):
        return None


def _parse(traceparent: Any) -> SpanContext | None:
    """A span's context from a W3C `traceparent` of version 00; None if it is none."""
    parts = traceparent.split("-") if isinstance(traceparent, str) else []
    if len(parts) != 4 or [len(part) for part in parts] != [2, 32, 16, 2]:
        return None
    try:
        trace_id, span_id, flags = (int(part, 16) for part in parts[1:])
    except ValueError:
        return None
    span = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return span if span.is_valid else None
