"""Rollouts where they are made: agent loops, their tools and their scoring, in verl's agent loop workers.

Each rollout is a span in the trace of the iteration that asked for it, which arrives with Ray's call. Durations
are recorded once for all rollouts that one worker makes for one iteration: as long as any of them was at it.
"""

from __future__ import annotations

import threading
import time
from functools import partial

from rlotel import context
from rlotel.patching import Call
from rlotel.phases import Loop, Phase, Union
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import SampleKind
from rlotel.words import REWARD, SAMPLE

TIMERS = {"compute_score": REWARD, "tool_calls": "tool"}
"""Timers inside of one rollout, the first from 0.8 on. What they leave of it is generation."""

Batch = tuple[int, bool]
"""The iteration that rollouts were asked for, and whether they are for a validation."""


class Rollouts:
    """The rollouts under way in this worker."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()
        self._batches: dict[Batch, tuple[Loop, int]] = {}

    def begin(self, call: Call) -> None:
        """An agent loop starts, which makes one rollout."""
        if not self._recorder.process.worker:
            return  # whoever makes rollouts in the trainer's own process has them in its timers
        batch = int(call.arguments["step"]), bool(call.arguments["validate"])
        with self._lock:
            loop, running = self._batches.get(batch) or (self._open(batch), 0)
            self._batches[batch] = loop, running + 1
        name, attributes = ("evaluate", {}) if batch[1] else (SAMPLE, {attr.SAMPLE_KIND.name: _GENERATE})
        call.notes["batch"] = batch
        self._enter(call, self._recorder.open_phase(name, attributes, inside=loop))

    def end(self, call: Call) -> None:
        """It has finished, or failed."""
        if (batch := call.notes.get("batch")) is None:
            return
        self.end_part(call)
        with self._lock:
            loop, running = self._batches.pop(batch)
            if running > 1:
                self._batches[batch] = loop, running - 1
                return
        loop.close(self._recorder.now())

    def begin_part(self, call: Call) -> None:
        """A timer inside of a rollout starts."""
        here = context.current()
        if isinstance(here, Phase) and here.loop is not None and (name := TIMERS.get(call.args[0])) is not None:
            self._enter(call, self._recorder.open_phase(name, inside=here))

    def end_part(self, call: Call) -> None:
        """It stops."""
        if (phase := call.notes.get("rollout")) is not None:
            context.leave(call.notes["rollout_entered"])
            self._recorder.close_phase(phase, call.error)

    def _enter(self, call: Call, phase: Phase | None) -> None:
        if phase is not None:
            call.notes["rollout"] = phase
            call.notes["rollout_entered"] = context.enter(phase)

    def _open(self, batch: Batch) -> Loop:
        iteration, validates = batch
        return Loop(iteration, self._recorder.now(), time.time_ns(), partial(self._observe, validates))

    def _observe(self, validates: bool, union: Union) -> None:
        phase, instruments = union.phase, self._recorder.instruments
        failed = {} if union.error is None else {attr.ERROR_TYPE.name: union.error}
        instruments.record(m.WORKER_DURATION, union.seconds, {attr.PHASE_NAME.name: phase.name, **failed})
        if phase.name == REWARD and not validates:
            instruments.record(m.REWARD_DURATION, union.seconds, failed)


_GENERATE = SampleKind.GENERATE.value
