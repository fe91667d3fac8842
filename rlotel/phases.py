"""Loops and phases while they are open, and what is recorded of them when they end.

One observation of a duration is one (loop, phase, attributes): the wall-clock union of its intervals in this
process, however often the phase is entered again, nested in itself or open in several threads at once. Every
interval still has a span of its own, up to `MOST_SPANS` a loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlotel.shares import Shares
from rlotel.words import IDLE, LOOP, Word

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from rlotel.instruments import Value

MOST_SPANS = 128
"""Spans one loop may have of phases with the same name; further ones only count towards its duration."""

MOST_INTERVALS = 4096
"""Intervals of a phase that are kept in order to see which overlap; then their length so far is settled."""

Key = tuple[tuple[str, "Value"], ...]


def error_type(error: BaseException | None) -> str | None:
    """The value of `error.type`, or None if nothing failed. Never the message: it may hold a prompt.

    Who presses Ctrl-C, cancels a task (as asynchronous trainers do with surplus rollouts) or closes a generator
    wants it to end: that is no failure, and pages nobody.
    """
    if error is None or isinstance(error, (GeneratorExit, KeyboardInterrupt)):
        return None
    if any(kind.__name__ == "CancelledError" for kind in type(error).__mro__):
        return None  # of asyncio, of concurrent.futures or of another event loop
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return None
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@dataclass(eq=False)
class Interval:
    """One stretch of time that is open: a loop, or one interval of a phase."""

    name: str
    started: float
    started_ns: int
    span: Span | None = None
    loop: Loop | None = None
    ended: bool = False
    error: str | None = None

    def abandon(self) -> None:
        """It belongs to the parent of this forked child: here it has no end."""
        self.ended = True


@dataclass(eq=False)
class Phase(Interval):
    """One interval of a phase."""

    word: Word = field(kw_only=True)
    metric_attributes: Mapping[str, Value] = field(kw_only=True)
    span_attributes: Mapping[str, str | bool | int] = field(kw_only=True)
    """Those known as it begins."""
    waits: bool = False
    inside: Interval | None = None
    outside: Context | None = None
    """What it began in, where its span is made only later."""
    counts: dict[str, float] = field(default_factory=dict)
    """What `add()` brought so far, by its keyword."""
    told: dict[str, float] = field(default_factory=dict)
    """The same by the span's attribute that tells it."""
    results: dict[str, str | bool | int] = field(default_factory=dict)
    """The span's attributes that are known as it ends."""
    before: float = 0.0
    """Seconds of its stretches before the one that started last, if it was paused."""


@dataclass
class Union:
    """The wall-clock union of one phase's intervals in one loop, told of in any order."""

    phase: Phase
    open: int = 0
    error: str | None = None
    _closed: list[tuple[float, float]] = field(default_factory=list)
    _settled: float = 0.0

    def begin(self) -> None:
        """One more interval opens."""
        self.open += 1

    def end(self, started: float, now: float, error: str | None) -> None:
        """An interval closes; a failure of any of them is a failure of the observation."""
        self.open -= 1
        self.error = error or self.error
        self._closed.append((started, now))
        if self.open == 0 and len(self._closed) >= MOST_INTERVALS:
            self._settled = self.seconds
            self._closed.clear()

    @property
    def seconds(self) -> float:
        """Its length so far, without what is still open."""
        seconds, reached = self._settled, float("-inf")
        for started, ended in sorted(self._closed):
            seconds += max(0.0, ended - max(started, reached))
            reached = max(reached, ended)
        return seconds


class Loop(Interval):
    """One iteration: its phases add up here and are recorded when it, and the last of them, has ended.

    `observe` gets each finished union, in the thread that ends it.
    """

    def __init__(self, iteration: int, started: float, started_ns: int, observe: Callable[[Union], None]) -> None:
        super().__init__(LOOP, started, started_ns)
        self.iteration = iteration
        self.counts: dict[str, float] = {}
        """What `add()` was told in this loop, by phase and keyword: `sample.tokens`, `train.flops`, …"""
        self.shares = Shares(started)
        self.spans: dict[str, int] = {}
        self._observe = observe
        self._unions: dict[tuple[str, Key], Union] = {}
        self._work: dict[str, Union] = {}
        self._seen: set[str] = set()
        self._lock = threading.RLock()  # re-entrant: a gc callback may use rlotel while its thread is in here

    def abandon(self) -> None:
        """As for any interval; another thread may have held the lock, and will never release it here."""
        super().abandon()
        self._lock = threading.RLock()

    def begin(self, phase: Phase) -> None:
        """A phase opens in this loop."""
        inside = phase.inside if phase.inside is not self else None
        with self._lock:
            self._seen.add(phase.name)
            for union in self._unions_of(phase):
                union.begin()
            if not self.ended:
                owner = IDLE if phase.waits else phase.name
                self.shares.begin(phase, owner, inside, phase.started)

    def end(self, phase: Phase, now: float) -> None:
        """A phase closes. One that outlives its loop is observed now, whole."""
        with self._lock:
            for union in self._unions_of(phase):
                union.end(phase.started, now, phase.error)
            if not self.ended:
                self.shares.end(phase, now)
                return
            finished = self._finished()
        for union in finished:
            self._observe(union)

    def pause(self, phase: Phase, now: float) -> None:
        """A phase stops, to go on later: what comes thousands of times an iteration is one phase nevertheless."""
        with self._lock:
            for union in self._unions_of(phase):
                union.end(phase.started, now, None)
            if not self.ended:
                self.shares.end(phase, now)
            phase.before += now - phase.started

    def resume(self, phase: Phase, now: float) -> None:
        """It goes on."""
        phase.started = now
        self.begin(phase)

    def close(self, now: float) -> None:
        """The iteration is over: observe every phase that is."""
        with self._lock:
            self.ended = True
            self.shares.close(now)
            finished = self._finished()
        for union in finished:
            self._observe(union)

    def _unions_of(self, phase: Phase) -> list[Union]:
        """The union that is observed, and, for work, that of all intervals of the name."""
        key = phase.name, tuple(phase.metric_attributes.items())
        if (union := self._unions.get(key)) is None:
            union = self._unions[key] = Union(phase)
        if phase.waits:
            return [union]
        if (work := self._work.get(phase.name)) is None:
            work = self._work[phase.name] = Union(phase)
        return [union, work]

    def _finished(self) -> list[Union]:
        keys = [key for key, union in list(self._unions.items()) if union.open == 0]
        return [self._unions.pop(key) for key in keys]

    def count(self, what: str, amount: float) -> None:
        """Add to a count of this loop."""
        with self._lock:
            self.counts[what] = self.counts.get(what, 0.0) + amount

    def may_have_span(self, name: str) -> bool:
        """Whether one more span of this phase is worth its cost; counts it if so."""
        with self._lock:
            self.spans[name] = self.spans.get(name, 0) + 1
            return self.spans[name] <= MOST_SPANS

    def seconds(self, name: str) -> float | None:
        """Seconds in which a phase was open and not waiting, whatever its role; None if it never was."""
        with self._lock:
            return work.seconds if (work := self._work.get(name)) else None

    def seen(self) -> frozenset[str]:
        """The names of the phases it had, waits included."""
        with self._lock:
            return frozenset(self._seen)
