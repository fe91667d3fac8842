"""Telemetry that was captured: searching it, and the file it is kept in.

A capture file holds one OTLP JSON export request a line.
"""

from __future__ import annotations

import os
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rlotel import otlp_json
from rlotel.otlp_records import Attributes, Event, Link, Point, SpanRecord, Value, flatten, frozen

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from rlotel.semconv.types import Metric, Span

__all__ = [
    "LIMIT_BYTES",
    "Capture",
    "CaptureFile",
    "Event",
    "Link",
    "Point",
    "SpanNode",
    "SpanRecord",
    "flatten",
    "own_folder",
    "read",
]

LIMIT_BYTES = 64 * 1024 * 1024
"""Where a capture file stops growing, unless told otherwise."""

_Record = TypeVar("_Record", Point, SpanRecord)


def own_folder() -> Path:
    """Where captures go unless told otherwise: a folder with the user's id, since users share temporary files."""
    return Path(tempfile.gettempdir()) / f"rlotel-{os.getuid()}"


@dataclass
class SpanNode:
    """A span with the spans it is the parent of, in order of their start."""

    span: SpanRecord
    children: list[SpanNode] = field(default_factory=list)


@dataclass(frozen=True)
class Capture:
    """What was captured, in the order in which it arrived."""

    all_points: tuple[Point, ...] = ()
    all_spans: tuple[SpanRecord, ...] = ()
    unreadable: int = 0
    """Lines of a file that are no OTLP JSON; a process that was killed may leave half a line."""

    def points(self, name: Metric | str | None = None, /, **match: Value) -> list[Point]:
        """The points of one metric, or of all, that have the given attributes.

        Attributes with dots in their names go in as `**{"rl.phase.name": "data"}`.
        """
        return list(_select(self.all_points, name, match))

    def latest(self, name: Metric | str | None = None, /, **match: Value) -> list[Point]:
        """The last point, by its time, of every series that `points` would select."""
        last: dict[Hashable, Point] = {}
        for point in _select(self.all_points, name, match):
            known = last.get(point.series)
            if known is None or point.time_ns >= known.time_ns:
                last[point.series] = point
        return list(last.values())

    def names(self) -> list[str]:
        """The names of all metrics, sorted."""
        return sorted({point.name for point in self.all_points})

    def spans(self, name: Span | str | None = None, /, **match: Value) -> list[SpanRecord]:
        """The spans of one name, or all, that have the given attributes."""
        return list(_select(self.all_spans, name, match))

    def traces(self) -> dict[str, list[SpanNode]]:
        """The roots of each trace, by trace id.

        A span whose parent was not captured is a root as well; a span that was sent twice counts once.
        """
        nodes: dict[tuple[str, str], SpanNode] = {}
        for span in sorted(self.all_spans, key=lambda span: span.start_ns):
            nodes.setdefault((span.trace_id, span.span_id), SpanNode(span))
        traces: dict[str, list[SpanNode]] = {}
        for (trace_id, _), node in nodes.items():
            roots = traces.setdefault(trace_id, [])
            parent = nodes.get((trace_id, node.span.parent_id or ""))
            (roots if parent is None or parent is node else parent.children).append(node)
        return traces

    def resources(self) -> list[Attributes]:
        """The different Resources, in the order in which they were first seen."""
        resources = [point.resource for point in self.all_points] + [span.resource for span in self.all_spans]
        return list({frozen(resource): resource for resource in resources}.values())


def read(source: str | os.PathLike[str] | Iterable[str]) -> Capture:
    """A capture from a file, or from its lines.

    Raises:
        OSError: the file cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        with Path(source).open(encoding="utf-8", errors="replace") as lines:
            return read(lines)
    points: list[Point] = []
    spans: list[SpanRecord] = []
    unreadable = 0
    for line in source:
        if line.isspace() or not line:
            continue
        try:
            more_points, more_spans = flatten(otlp_json.from_line(line))
        except ValueError:
            unreadable += 1
        else:
            points += more_points
            spans += more_spans
    return Capture(tuple(points), tuple(spans), unreadable)


class CaptureFile:
    """An append-only capture file: the place for telemetry when no endpoint is set.

    Each request is one line, in the file when `write` returns. Thread-safe; several processes may append
    to one file and share its limit.
    """

    def __init__(self, path: str | os.PathLike[str], limit_bytes: int = LIMIT_BYTES) -> None:
        self.path = Path(path)
        self.limit_bytes = limit_bytes
        self.full = False
        """Whether a request was refused because of the limit; none is taken after that."""
        self.error: OSError | None = None
        """The last error of opening or writing, if there was one."""
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._torn = False
        self._file: int | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            self.error = error

    def write(self, request: otlp_json.ExportRequest) -> bool:
        """Appends one request; False, and nothing raised, if it could not be written.

        `full` or `error` say why. After an error the next write tries again, since a disk may be cleared.
        """
        if self._process != os.getpid():
            # A thread of the parent may have held the lock at the fork, and will never release it here.
            self._process, self._lock = os.getpid(), threading.Lock()
        line = otlp_json.to_line(request).encode() + b"\n"
        with self._lock:
            if self._file is None or self.full:
                return False
            try:
                if os.fstat(self._file).st_size + len(line) > self.limit_bytes:
                    self.full = True
                    return False
                self._append(self._file, line)
            except OSError as error:
                self.error = error
                return False
            return True

    def close(self) -> None:
        """Closes the file; later writes return False."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _append(self, file: int, line: bytes) -> None:
        # A disk that fills up may take half a line. A line break before the next one saves that next one.
        rest = b"\n" + line if self._torn else line
        while rest:
            written = os.write(file, rest)
            rest = rest[written:]
            self._torn = bool(rest)

    def __enter__(self) -> CaptureFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _select(records: Iterable[_Record], name: Metric | Span | str | None, match: Attributes) -> Iterator[_Record]:
    wanted = None if name is None else str(name)
    for record in records:
        if wanted is not None and record.name != wanted:
            continue
        if all(key in record.attributes and record.attributes[key] == match[key] for key in match):
            yield record
