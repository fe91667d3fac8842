"""Rollouts: when they are scored, what they consist of, and when new weights reach the engines that make them.

The trainer's own timers say when rollouts are made in it. In a worker that makes them for a trainer there is no
such timer and no iteration: there every call for rollouts is one phase, and so is all the scoring in it together.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from rlotel import context
from rlotel.integrations.nemo_rl.counts import Counts
from rlotel.integrations.nemo_rl.iterations import Iterations
from rlotel.integrations.tables import Timed
from rlotel.patching import Call
from rlotel.phases import Phase, Union
from rlotel.recorder import Recorder
from rlotel.semconv.attributes import SampleKind
from rlotel.words import REWARD, SAMPLE, SYNC


@dataclass(eq=False)
class _Making:
    """One call for rollouts."""

    counted: bool
    """Whether this process reports what the rollouts consist of."""
    sample: Phase | None = None
    """In a worker: that they are made."""
    scored: Union | None = None
    """In a worker: when they were scored."""
    first: float | None = None


_making: ContextVar[_Making | None] = ContextVar("rlotel_nemo_rl_making", default=None)


class Rollouts:
    """What is watched of rollouts, in a trainer or a worker."""

    def __init__(self, recorder: Recorder, iterations: Iterations, counts: Counts) -> None:
        self._recorder = recorder
        self._iterations = iterations
        self._counts = counts
        self._sync: Phase | None = None

    # Calls for rollouts; the outermost counts.

    def begin(self, call: Call) -> None:
        """Before one of `ROLLOUTS`."""
        if _making.get() is not None or self._iterations.evaluating:
            return
        making = _Making(counted=self._iterations.running(SAMPLE) is not None)
        call.notes["making"] = making
        _making.set(making)
        if self._iterations.setup is None and self._iterations.current is None:
            making.sample = self._iterations.open(Timed(SAMPLE, kind=SampleKind.GENERATE))
            making.scored = Union(making.sample) if making.sample is not None else None

    def made(self, call: Call) -> None:
        """After it."""
        making = self._end(call)
        if making is not None and making.counted and call.result is not None:
            self._counts.rolled_out(*_batch_and_metrics(call.result))

    def failed(self, call: Call) -> None:
        """After it has raised."""
        self._end(call)

    def _end(self, call: Call) -> _Making | None:
        making: _Making | None = call.notes.get("making")
        if making is None:
            return None
        _making.set(None)
        if making.sample is not None:
            if making.scored is not None and making.first is not None:
                scoring = self._recorder.open_phase(REWARD, inside=making.sample, at=making.first)
                self._recorder.close_phase(scoring, at=making.first + making.scored.seconds)
            self._recorder.close_phase(making.sample, call.error)
        return making

    # Scoring: `calculate_rewards`, once a turn of all rollouts or of one.

    def scoring(self, call: Call) -> None:
        """Before it."""
        making = _making.get()
        if self._iterations.evaluating:
            return
        if making is not None and making.scored is not None:
            call.notes["since"] = self._recorder.now()
            making.scored.begin()
            return
        phase = self._recorder.open_phase(REWARD)
        if phase is not None:
            call.notes["phase"] = phase, context.enter(phase)

    def scored(self, call: Call) -> None:
        """After it, or after it has raised."""
        since = call.notes.get("since")
        making = _making.get()
        if since is not None and making is not None and making.scored is not None:
            making.scored.end(since, self._recorder.now(), None)
            making.first = since if making.first is None else min(making.first, since)
        self._close(call)

    # New weights.

    def syncing(self, call: Call) -> None:
        """Before weights move, unless a timer or a call that is around it has said so."""
        if self._iterations.running(SYNC) is None and (self._sync is None or self._sync.ended):
            phase = self._sync = self._iterations.open(Timed(SYNC))
            if phase is not None:
                call.notes["phase"] = phase, context.enter(phase)

    def synced(self, call: Call) -> None:
        """After they have, or could not."""
        self._close(call)

    def _close(self, call: Call) -> None:
        phase, entered = call.notes.get("phase", (None, None))
        if phase is not None:
            context.leave(entered)
            self._recorder.close_phase(phase, call.error)


def _batch_and_metrics(result: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Of a pair, or of what calls to NeMo Gym give."""
    if isinstance(result, tuple):
        return result[0], result[1]
    return result.final_batch, result.rollout_metrics
