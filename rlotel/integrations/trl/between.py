"""What a trainer does between its iterations: evaluations, checkpoints, and logs of the iterations before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlotel.integrations.loops import Loops
from rlotel.integrations.tables import Gauges
from rlotel.integrations.trl import setup, tables
from rlotel.patching import Call


class Evaluations:
    """The evaluations of a trainer. What is done in one is none of training."""

    def __init__(self, loops: Loops) -> None:
        self._loops = loops
        self.running = 0
        """Evaluations that are open: one for each of several data sets, inside of one of all."""

    def begin(self, call: Call) -> None:
        """Before `evaluate`."""
        self.running += 1
        self._loops.open(tables.EVALUATE, call)

    def end(self, call: Call) -> None:
        """After it, or where it failed: the outermost has the scores of all."""
        self.running -= 1
        self._loops.shut(call)
        if not self.running and call.error is None:
            prefix = f"{call.arguments['metric_key_prefix']}_"
            scores: Mapping[str, Any] = call.result or {}
            found = {key: value for key, value in scores.items() if not key.endswith(_ENDINGS)}
            self._loops.evaluated(found, prefix)


_ENDINGS = tuple(f"_{name}" for name in tables.NO_SCORES)


class Checkpoints:
    """The checkpoints of a trainer."""

    def __init__(self, loops: Loops) -> None:
        self._loops = loops
        self._restoring: Call | None = None

    def begin_restoring(self, call: Call) -> None:
        """Before a model is restored; its optimizer is restored later, after it was made."""
        if self._restoring is None:
            self._restoring = call
            self._loops.open(tables.RESTORE, call)

    def restored(self, _call: Call) -> None:
        """After the optimizer was restored, or was found not to be in the checkpoint."""
        self.end_restoring()

    def failed(self, call: Call) -> None:
        """Where one of both failed."""
        self.end_restoring(call.error)

    def end_restoring(self, error: BaseException | None = None) -> None:
        """No more is restored."""
        call, self._restoring = self._restoring, None
        if call is not None:
            call.error = error
            self._loops.shut(call)


def gauges_of(trainer: Any) -> Gauges:
    """What the keys mean that a trainer logs."""
    if setup.is_asynchronous(trainer):
        return tables.ASYNCHRONOUS
    return tables.ONLINE if hasattr(trainer, "_generate") else tables.UPDATE
