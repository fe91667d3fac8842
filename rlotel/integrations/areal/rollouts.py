"""Rollouts where they are made: in AReaL's rollout workers, or beside the loop where every rank makes its own.

Each is a span in the trace of the iteration in which it started: the weights it started with say which. Durations
are recorded once for all rollouts that start with the same weights, as long as any of them is under way.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass

from rlotel import context
from rlotel.integrations.areal.tables import CONTEXTS
from rlotel.integrations.configuration import dig
from rlotel.patching import Call, Patches
from rlotel.phases import Interval, Loop, Phase
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import PhaseName, SampleKind
from rlotel.words import REWARD, SAMPLE

GROUP = "GroupedRolloutWorkflow"
"""The workflow that runs another one several times for one prompt."""

Key = tuple[int, bool]
"""The iteration that rollouts are of, and whether they are for an evaluation."""


@dataclass(eq=False)
class Batch:
    """The rollouts that one process makes for one key, while any of them is under way."""

    key: Key
    loop: Loop
    running: int = 0
    reward_error: str | None = None


class Rollouts:
    """The rollouts under way in this process."""

    def __init__(self, patches: Patches, recorder: Recorder) -> None:
        self._patches = patches
        self._recorder = recorder
        self._lock = threading.Lock()
        self._watched: set[type] = set()
        self._batches: dict[Key, Batch] = {}

    def assigned(self, call: Call) -> None:
        """A prompt is about to be handed to a workflow; the user's class is known from the first one on."""
        workflow = call.args[0].workflow
        while type(workflow).__name__ == GROUP:
            workflow = workflow.workflow
        kind = type(workflow)
        with self._lock:
            if kind in self._watched:
                return
            self._watched.add(kind)
        if hasattr(kind, "arun_episode"):
            self._patches.watch_method(kind, "arun_episode", before=self.begin, after=self.end, failed=self.end)

    def begin(self, call: Call) -> None:
        """One rollout starts."""
        if self._batch(context.current()) is not None:
            return  # a workflow that runs the one it inherits from
        version = int(call.args[0].get_version() if call.args else call.kwargs["engine"].get_version())
        evaluates = _evaluates()
        # Weights have their new version before an evaluation, and the next iteration begins after it.
        key = (version if evaluates else version + 1), evaluates
        with self._lock:
            if (batch := self._batches.get(key)) is None:
                batch = self._batches[key] = Batch(key, self._recorder.join_loop(key[0]))
            batch.running += 1
        name, attributes = (_EVALUATE, {}) if evaluates else (SAMPLE, {attr.SAMPLE_KIND.name: _GENERATE})
        call.notes["batch"] = batch
        self._enter(call, self._recorder.open_phase(name, attributes, inside=batch.loop))

    def _batch(self, interval: Interval | None) -> Batch | None:
        """The rollouts that a phase is part of."""
        with self._lock:
            return next((batch for batch in self._batches.values() if batch.loop is _loop(interval)), None)

    def end(self, call: Call) -> None:
        """It has finished, or failed."""
        batch: Batch | None = call.notes.get("batch")
        if batch is None:
            return
        self.end_part(call)
        with self._lock:
            batch.running -= 1
            if batch.running:
                return
            del self._batches[batch.key]
        if (seconds := batch.loop.seconds(REWARD)) is not None and not batch.key[1]:
            failed = {} if batch.reward_error is None else {attr.ERROR_TYPE.name: batch.reward_error}
            self._recorder.instruments.record(m.REWARD_DURATION, seconds, failed)
        batch.loop.close(self._recorder.now())

    def scores(self, call: Call) -> None:
        """A rollout's reward is asked for."""
        self._begin_part(call, REWARD)

    def scored(self, call: Call) -> None:
        """It is there, or could not be told."""
        phase: Phase | None = call.notes.get("phase")
        self.end_part(call)
        if phase is not None and phase.error is not None and (batch := self._batch(phase)) is not None:
            batch.reward_error = phase.error

    def uses_tool(self, call: Call) -> None:
        """A rollout's code is run in a sandbox."""
        self._begin_part(call, "tool")

    def _begin_part(self, call: Call, name: str) -> None:
        here = context.current()
        if self._batch(here) is not None:
            self._enter(call, self._recorder.open_phase(name, inside=here))

    def end_part(self, call: Call) -> None:
        """It has ended, or failed."""
        if (phase := call.notes.get("phase")) is not None:
            context.leave(call.notes["entered"])
            self._recorder.close_phase(phase, call.error)

    def _enter(self, call: Call, phase: Phase | None) -> None:
        if phase is not None:
            call.notes["phase"] = phase
            call.notes["entered"] = context.enter(phase)


def _loop(interval: Interval | None) -> Loop | None:
    return interval.loop if isinstance(interval, Phase) else None


_GENERATE = SampleKind.GENERATE.value
_EVALUATE = PhaseName.EVALUATE.value


def _evaluates() -> bool:
    """Whether the rollout that runs here is for an evaluation."""
    found = next((sys.modules[name] for name in CONTEXTS if name in sys.modules), None)
    return found is not None and bool(dig(found.get(), "is_eval"))
