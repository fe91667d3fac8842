"""Which iteration a loop is: its number, and whether it was begun before."""

from __future__ import annotations

import threading

from rlotel import gates
from rlotel.instruments import Instruments
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m


class Iterations:
    """The numbers of one process's loops."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self._lock = threading.RLock()
        self._last: int | None = None
        self._failed = False
        self._another = False
        self.returns = 0
        """How often an iteration began that had been before: such a one gets a trace of its own."""

    def another(self) -> None:
        """Another training begins in this process: that it starts at the beginning says nothing of the last one.

        Unless that one failed: then it is the same training, restarted.
        """
        self._another = True

    def begin(self, wanted: int | None, *, alone: bool) -> int:
        """The number of the loop that begins.

        One that goes back with no other loop open, or to the one that failed, is a restart from a checkpoint.

        Args:
            wanted: what the user says it is; without one it follows the last.
            alone: whether no other loop is open.
        """
        with self._lock:
            return self._begin(wanted, alone)

    def _begin(self, wanted: int | None, alone: bool) -> int:
        last = self._last
        number = 0 if last is None else last + 1
        if wanted is not None:
            try:
                number = gates.integer(wanted)
            except gates.Refused as refused:
                self._instruments.refuse(attr.LOOP_ITERATION.name, refused.reason)
        another, self._another = self._another and not self._failed, False
        if last is not None and (number == last or (number < last and alone)):
            self.returns += 1
            if alone and not another and (number < last or self._failed):
                reason = attr.RestartReason.UNKNOWN.value
                self._instruments.add(m.RESTARTS, 1, {attr.RESTART_REASON.name: reason})
                done_again = last - number if self._failed else last - number + 1
                self._instruments.add(m.CHECKPOINT_LOST_STEPS, done_again)
        self._last = number
        return number

    def end(self, *, failed: bool) -> None:
        """A loop ended."""
        self._failed = failed
