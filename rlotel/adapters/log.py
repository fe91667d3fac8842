"""What `follow()` and `logger()` give: it takes what a trainer logs, and knows what of it was left out."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from rlotel.errors import Faults, contained, log
from rlotel.logged.rows import Rows
from rlotel.logged.tables import Table
from rlotel.recorder import Recorder

PATIENCE = 100
"""Log calls without any key of the table, after which it is said."""
SHOWN = 20
"""Names of keys in one line, and such lines."""
COMPARED = 200
"""Keys among which one is looked for that may have been meant: with more, a process would not end in time."""


class Log:
    """Takes what a trainer logs, by its key table. Call it as a logger: `log({"reward": 0.5}, step=3)`.

    No method raises, and each may be called from any thread; without an open session they do nothing.
    """

    def __init__(self, name: str, table: Table, recorder: Recorder | None) -> None:
        self._name = name
        self._table = table
        self._recorder = recorder
        self._rows = Rows(table, recorder) if recorder is not None else None
        self._calls = 0
        self._said = self._said_missing = False
        self.drain: Callable[[], None] = lambda: None
        """Takes what its source has not handed over yet."""
        self.let_go: Callable[[], None] = lambda: None
        """Leaves its source alone."""

    @property
    def faults(self) -> Faults:
        """Where errors of these methods go."""
        return self._recorder.faults if self._recorder is not None else _NOWHERE

    @contained
    def __call__(self, values: Mapping[str, Any], step: int | None = None) -> None:
        """Take some values of a step.

        Args:
            values: by key; mappings in it are looked through, their keys joined by dots.
            step: the iteration's number. Without one, a key that comes again begins the next.
        """
        self.take(values, step)

    def take(
        self, values: Mapping[str, Any], step: object = None, *, at: float | None = None, whole: bool = False
    ) -> None:
        """As a call, for what watches a logger; see `Rows.log`."""
        rows = self._rows
        if rows is None:
            return
        rows.log(values, step, at=at, whole=whole)
        self._calls += 1
        if not self._said and (rows.iterations >= 2 or self._calls >= PATIENCE):
            self._said = True
            self._hint(rows)

    def ago(self, seconds: float) -> float | None:
        """The moment so long ago, as `take` takes it."""
        return None if self._recorder is None else self._recorder.now() - seconds

    @property
    def unmapped(self) -> list[str]:
        """The keys that were logged and are not in the table, in the order they came."""
        rows = self._rows
        return list(rows.unmapped) if rows is not None else []

    @property
    def missing(self) -> list[str]:
        """The keys of the table that were never logged."""
        rows = self._rows
        return [key for key in self._table.entries if rows is None or key not in rows.mapped]

    @contained
    def finish(self) -> None:
        """The last step that was logged is over: it is recorded, without waiting for the next."""
        self.drain()
        if (rows := self._rows) is not None:
            rows.finish()

    @contained
    def end(self) -> None:
        """The trainer is through, as far as one can see; what never came is said."""
        self.finish()
        rows = self._rows
        if rows is None or not rows.mapped or self._said_missing:
            return
        self._said_missing = True
        missing, others = self.missing, list(rows.unmapped)[:COMPARED]
        for key in missing[:SHOWN]:
            near = difflib.get_close_matches(key, others, n=1, cutoff=0.75)
            meant = f"; {near[0]!r} was" if near else ""
            log.warning("rlotel: %s never logged %r, which its table has%s", self._name, key, meant)
        if len(missing) > SHOWN:
            log.warning("rlotel: %s never logged %d more keys of its table", self._name, len(missing) - SHOWN)

    @contained
    def close(self) -> None:
        """Stop: what is logged from now on is not taken."""
        self.end()
        self._rows = None
        self.let_go()

    def _hint(self, rows: Rows) -> None:
        some = ", ".join(list(rows.unmapped)[:SHOWN]) + (", …" if len(rows.unmapped) > SHOWN else "")
        if not rows.mapped:
            log.warning("rlotel: %s has logged no key of its table; it logs %s", self._name, some or "nothing")
        elif rows.unmapped:
            log.info("rlotel: %s also logs what its table does not have: %s (said once)", self._name, some)


_NOWHERE = Faults()
