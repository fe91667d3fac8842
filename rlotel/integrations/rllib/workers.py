"""Env runners, learners and aggregators as actors: what each did, in the trace of the iteration that asked for it.

What they did is counted by the algorithm's process, from its results. Here it is only timed, so that a slow one
among them shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace

from rlotel import context
from rlotel.integrations.rllib import setup
from rlotel.integrations.rllib.tables import DATA, EVALUATION, GENERATE, UPDATE
from rlotel.integrations.tables import Timed
from rlotel.patching import Call
from rlotel.phases import Phase
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m

MOST_SPANS = 8
"""Spans of one phase that a worker may add to an iteration: DQN's env runners are asked for every single step."""


@dataclass
class _Work:
    """One call."""

    timed: Timed
    began: float
    phase: Phase | None = None
    """Where it has a span."""


class Workers:
    """The work of this process, if it is such an actor."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._iteration = 0
        """The trace of the iteration that is worked for."""
        self._spans = 0
        self._asked: otel_context.Context | None = None
        self._roles: set[attr.Role] = set()

    def is_one(self) -> bool:
        """Whether this process is one."""
        return self._recorder.process.worker

    def sampling(self, call: Call) -> None:
        """Before an env runner samples."""
        config = call.instance.config
        self._use_gpus(config, learns=False)
        timed = EVALUATION if getattr(config, "in_evaluation", False) else GENERATE
        self._begin(timed, call)

    def batching(self, call: Call) -> None:
        """Before an aggregator makes a batch of episodes."""
        if self.is_one():
            self._begin(DATA, call)

    def asked(self, _call: Call) -> None:
        """Before a learner's thread is given something to do: it works for whoever asked last."""
        if self.is_one():
            self._asked = otel_context.get_current()

    def updating(self, call: Call) -> None:
        """Before a learner updates, in a thread of its own or in the call that asks for it."""
        self._use_gpus(call.instance.config, learns=True)
        if self._asked is not None and not trace.get_current_span().get_span_context().is_valid:
            call.notes["arrived"] = context.arrive(self._asked)
        self._begin(UPDATE, call)

    def end(self, call: Call) -> None:
        """It is done, or failed."""
        work: _Work | None = call.notes.pop("work", None)
        if work is not None and work.phase is not None:
            context.leave(call.notes.pop("entered"))
            self._recorder.close_phase(work.phase, call.error)
        elif work is not None:
            self._tell(work, call.error)
        if (arrived := call.notes.pop("arrived", None)) is not None:
            context.leave(arrived)

    def _begin(self, timed: Timed, call: Call) -> None:
        iteration = trace.get_current_span().get_span_context().trace_id
        if iteration != self._iteration:
            self._iteration, self._spans = iteration, 0
        self._spans += 1
        work = call.notes["work"] = _Work(timed, self._recorder.now())
        if iteration and self._spans <= MOST_SPANS:
            work.phase = self._open(work)
            call.notes["entered"] = context.enter(work.phase)

    def _open(self, work: _Work) -> Phase:
        kind = {attr.SAMPLE_KIND.name: work.timed.kind and str(work.timed.kind)}
        return self._recorder.open_phase(work.timed.phase, span_attributes=kind, at=work.began)

    def _tell(self, work: _Work, error: BaseException | None) -> None:
        """What has no span of its own, unless it failed."""
        if error is not None:
            self._recorder.close_phase(self._open(work), error)
        else:
            seconds = self._recorder.now() - work.began
            self._recorder.instruments.record(m.WORKER_DURATION, seconds, {attr.PHASE_NAME.name: work.timed.phase})

    def _use_gpus(self, config: Any, *, learns: bool) -> None:
        role = setup.gpu_role(config, learns=learns)
        if role is not None and role not in self._roles:
            self._roles.add(role)
            self._recorder.process.use_gpus(str(role))
