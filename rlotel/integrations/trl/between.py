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
        self._prefixes: list[str] = []
        """What the keys of the open ones begin with: that of one data set is inside of that of several."""
        self._several = False
        """Whether the latest began inside of another."""

    @property
    def running(self) -> bool:
        """Whether one is open."""
        return bool(self._prefixes)

    def begin(self, call: Call) -> None:
        """Before `evaluate`."""
        prefix = call.notes["prefix"] = call.arguments["metric_key_prefix"]
        self._several = self.running
        self._prefixes.append(prefix)
        self._loops.open(tables.EVALUATE, call)

    def end(self, call: Call) -> None:
        """After it, or where it failed."""
        if (prefix := call.notes.get("prefix")) is None:
            return
        self._prefixes.pop()
        self._loops.shut(call)
        if call.error is None and (self.running or not self._several):
            outer = self._prefixes[0] if self._prefixes else prefix
            self._loops.evaluated(_scores(call.result, prefix, prefix.removeprefix(outer).lstrip("_")))


def _scores(logged: Mapping[str, Any], prefix: str, data: str) -> dict[str, Any]:
    """The scores by their names, each with that of its data set before it where there are several.

    TRL's own keys always begin with `eval_`, whatever the data set.
    """
    found = {}
    for key, value in logged.items():
        start = next((start for start in (f"{prefix}_", "eval_") if key.startswith(start)), None)
        if start is not None and (name := key.removeprefix(start)) not in tables.NO_SCORES:
            found[f"{data}_{name}" if data else name] = value
    return found


class Checkpoints:
    """The checkpoints of a trainer. One is restored in two parts: the model, and what it is trained with.

    Both are one phase. What the trainer makes between them, such as the optimizer, is taken out of its duration.
    """

    def __init__(self, loops: Loops) -> None:
        self._loops = loops
        self._call: Call | None = None
        """That of the first part, which has the phase."""
        self._paused: float | None = None
        """When the first part was over, until the second begins."""
        self._between = 0.0
        """Seconds from the one to the other."""

    def begin_model(self, call: Call) -> None:
        """Before the model is restored."""
        if self._call is None:
            self._call, self._paused, self._between = call, None, 0.0
            self._loops.open(tables.RESTORE, call)

    def end_model(self, _call: Call) -> None:
        """After it."""
        self._paused = self._loops.recorder.now()

    def begin_rest(self, _call: Call) -> None:
        """Before the optimizer is restored, if it is in the checkpoint."""
        if self._paused is not None:
            self._between, self._paused = self._loops.recorder.now() - self._paused, None

    def end_rest(self, call: Call) -> None:
        """After it, or where it failed."""
        self._end(call.error, self._loops.recorder.now() - self._between)

    def end(self, error: BaseException | None = None) -> None:
        """No more is restored, or restoring the model failed."""
        self._end(None if self._paused else error, self._paused)

    def _end(self, error: BaseException | None, at: float | None) -> None:
        call, self._call = self._call, None
        if call is not None:
            call.error = error
            self._loops.shut(call, at=at)


def gauges_of(trainer: Any) -> Gauges:
    """What the keys mean that a trainer logs."""
    if setup.is_asynchronous(trainer):
        return tables.ASYNCHRONOUS
    return tables.ONLINE if hasattr(trainer, "_generate") else tables.UPDATE
