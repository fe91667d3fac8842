"""Which loop and phase is current, in this thread or task.

OpenTelemetry's context carries the span; ours carries the accounting that goes with it. Both are context
variables, so tasks inherit them; threads do through the `threads` integration.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context
from opentelemetry import trace

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from rlotel.phases import Interval

_current: ContextVar[Interval | None] = ContextVar("rlotel_current", default=None)

Entered = tuple["Token[Interval | None]", "Token[Context] | None"]


def current() -> Interval | None:
    """The innermost open loop or phase here."""
    return _current.get()


def enter(interval: Interval) -> Entered:
    """Make an interval current, and its span with it."""
    token = _current.set(interval)
    if interval.span is None:
        return token, None
    return token, otel_context.attach(trace.set_span_in_context(interval.span))


def arrive(there: Context) -> Entered:
    """Make a context current that came from another process: no loop of this one, but that one's span."""
    return _current.set(None), otel_context.attach(there)


def leave(entered: Entered) -> None:
    """Go back to what was current before.

    A generator may be closed in another context than it was started in; there is nothing to restore there.
    """
    ours, theirs = entered
    try:
        _current.reset(ours)
    except ValueError:
        return
    if theirs is not None:
        otel_context.detach(theirs)
