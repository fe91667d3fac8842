"""Updates of the modules, and how many steps their optimizers took.

A learner is in the algorithm's process, where its steps are seen, or several are in actors of their own; then the
number of steps follows from what was asked of them. IMPALA's and APPO's learners update in a thread: whoever asks
waits only where that falls behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlotel.integrations.configuration import dig
from rlotel.integrations.loops import Loops
from rlotel.integrations.rllib import setup, tables
from rlotel.integrations.rllib.stretches import Stretches
from rlotel.patching import Call
from rlotel.recorder import Recorder
from rlotel.semconv import metrics as m
from rlotel.words import TRAIN


class Updates:
    """Those of the algorithm in this process."""

    def __init__(self, recorder: Recorder, loops: Loops, stretches: Stretches) -> None:
        self._recorder = recorder
        self._loops = loops
        self._stretches = stretches
        self._taken = self._told = 0
        """Steps so far, as whoever takes them counts, perhaps in a thread, and as far as they were told."""

    def begin(self, call: Call) -> None:
        """Before learners are asked to update."""
        self._stretches.waited()
        if call.kwargs.get("async_update"):
            call.notes["refused"] = _refused(call.instance)
        else:
            self._stretches.begin(tables.UPDATE, call)

    def end(self, call: Call) -> None:
        """They have, or were asked to."""
        self._stretches.end(call)
        taken = "refused" not in call.notes or call.notes["refused"] == _refused(call.instance)
        if call.error is None and call.instance.is_remote and taken:
            self._taken += max(1, int(call.kwargs.get("num_epochs") or 1))

    def here(self, call: Call) -> None:
        """Before the learner of this process updates; in a thread that goes on between iterations, unobserved."""
        if self._loops.current is not None:
            self._stretches.begin(tables.UPDATE, call)

    def step(self, _call: Call) -> None:
        """A learner of this process has taken a step."""
        self._taken += 1

    def count(self, config: object, learners: Mapping[str, Any]) -> None:
        """Tell how many steps the iteration took."""
        taken = self._taken
        steps, self._told = taken - self._told, taken
        minibatch = dig(config, "minibatch_size")
        actors = setup.learners(config)
        if actors and minibatch:
            rows = [tables.total(found.get(tables.ROWS_TRAINED)) for found in tables.trained(learners).values()]
            steps = round(max(filter(None, rows), default=0.0) / minibatch / actors)
        if not steps:
            return
        if self._loops.latest(TRAIN) is not None:
            self._loops.add(TRAIN, steps=steps)
        elif self._loops.reports:
            # All of it happened in the learners' actors, which tell how long it took.
            self._recorder.instruments.add(m.TRAIN_STEPS, steps)


def _refused(group: Any) -> float:
    """Rows that learners have refused so far, since they had enough to do."""
    return float(group.get_stats()["learner_group_ts_dropped_lifetime"])
