"""A file of JSON lines that something else writes: read as it grows, in a thread of its own."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import BinaryIO

from rlotel.adapters.log import Log
from rlotel.logged.lines import LONGEST, parse, split, time_of
from rlotel.logged.tables import Table
from rlotel.patching import Patches
from rlotel.recorder import Recorder
from rlotel.semconv.attributes import RlotelRefusalReason as Reason

POLL = 0.5
"""Seconds between looks at the file."""
AT_ONCE = 16 * LONGEST
"""Bytes that are read in one look; what is more waits for the next."""


class Tail:
    """The end of a file, from which whole lines are taken. Safe in any thread.

    What was in the file before is left out: it is of an earlier run, and `rlotel import` brings it.
    """

    def __init__(self, path: Path, table: Table, log: Log, recorder: Recorder) -> None:
        self._path = path
        self._table = table
        self._log = log
        self._recorder = recorder
        self._since_1970 = time.time() - recorder.now()
        """What a moment of the recorder's clock has to be added to."""
        self._lock = threading.RLock()
        self._file = self._open()
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)
        self._rest = b""
        self._stopped = threading.Event()
        self._pid = os.getpid()
        threading.Thread(target=self._run, name="rlotel-file", daemon=True).start()

    def read(self) -> None:
        """Take the lines that are new."""
        if self._in_child():
            return
        with self._lock:
            if self._stopped.is_set():
                return
            if self._file is not None and self._has_more(self._file):
                return
            if self._file is None or self._replaced(self._file):
                self._take_rest()
                self._close()
                self._file = self._open()
                if self._file is not None:
                    self._has_more(self._file)

    def last(self) -> None:
        """Take what is new, the last line included if it has no end."""
        if self._in_child():
            return
        with self._lock:
            self.read()
            self._take_rest()

    def stop(self) -> None:
        """Take what is new, and look no more."""
        if self._in_child():
            return
        with self._lock:
            self.last()
            self._stopped.set()
            self._close()

    def _run(self) -> None:
        while not self._stopped.wait(POLL):
            with self._recorder.faults.contain(f"follow {self._path.name}"):
                self.read()

    def _in_child(self) -> bool:
        """Whether this is a forked child now: file and lock are its parent's, which may hold it."""
        return os.getpid() != self._pid

    def _has_more(self, file: BinaryIO) -> bool:
        """Read on; whether there is more than can be read in one look."""
        left = AT_ONCE
        while left > 0:
            if not (piece := file.read(LONGEST)):
                return False
            left -= len(piece)
            *lines, self._rest = (self._rest + piece).split(b"\n")
            for line in lines:
                self._take(line)
            if len(self._rest) > LONGEST:
                self._rest = self._rest[: LONGEST + 1]  # enough of it to be refused
        return True

    def _take_rest(self) -> None:
        if parse(self._rest) is not None:
            self._take(self._rest)
            self._rest = b""

    def _open(self) -> BinaryIO | None:
        try:
            return self._path.open("rb")
        except OSError:
            return None  # it is not there yet

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._rest = None, b""

    def _replaced(self, file: BinaryIO) -> bool:
        """Whether the path is another file by now, or the file was begun anew."""
        known = os.fstat(file.fileno())
        try:
            found = self._path.stat()
        except OSError:
            return False
        return (found.st_ino, found.st_dev) != (known.st_ino, known.st_dev) or found.st_size < file.tell()

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        values = parse(line)
        if values is None:
            self._recorder.instruments.refuse(f"a line of {self._path.name}", Reason.TEXT)
            return
        now, written = self._recorder.now(), time_of(values, self._table.time)
        bare, step = split(values, self._table.step)
        with self._recorder.faults.contain(f"a line of {self._path.name}"):
            self._log.take(bare, step, at=now if written is None else min(now, written - self._since_1970))


def connect(patches: Patches, log: Log, path: Path, table: Table, recorder: Recorder) -> None:
    """Begin to read, until the session ends."""
    tail = Tail(path, table, log, recorder)
    log.drain = tail.last
    patches.when_undone(tail.stop)
