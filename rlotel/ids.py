"""Span and trace ids from a generator of our own.

The SDK draws ids from Python's global `random`: turning telemetry on would change the results of a training
run, and `random.seed(42)` on every rank would give every rank, and every restart, the same trace ids.
"""

from __future__ import annotations

import os
import random
import threading

from opentelemetry.sdk.trace.id_generator import IdGenerator


class Ids(IdGenerator):
    """Random ids, seeded by the operating system, anew in a forked child. Safe in any thread."""

    def __init__(self) -> None:
        self._seed()

    def generate_span_id(self) -> int:
        """A 64-bit id that is not 0, or the one that was asked for."""
        wanted, self._next.span = getattr(self._next, "span", None), None
        return wanted or self._draw(64)

    def generate_trace_id(self) -> int:
        """A 128-bit id that is not 0, or the one that was asked for."""
        wanted, self._next.trace = getattr(self._next, "trace", None), None
        return wanted or self._draw(128)

    def next_root(self, trace_id: int, span_id: int) -> None:
        """Give the next trace that this thread begins, and its root, these ids."""
        self._next.trace, self._next.span = trace_id, span_id

    def is_trace_id_random(self) -> bool:
        """Whether the W3C flag for random trace ids may be set."""
        return True

    def _draw(self, bits: int) -> int:
        if os.getpid() != self._pid:
            self._seed()  # or the child would repeat the ids of its parent
        return self._random.getrandbits(bits) or self._draw(bits)

    def _seed(self) -> None:
        self._random = random.Random(os.urandom(32))  # noqa: S311 - ids are no secrets
        self._pid = os.getpid()
        self._next = threading.local()
