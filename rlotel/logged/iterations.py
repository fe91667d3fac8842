"""One iteration that is over, told to the recorder: of its phases only the lengths are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlotel.integrations.loops import NOWHERE, Loops
from rlotel.logged.tables import Count, Duration
from rlotel.phases import Phase
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv.attributes import CheckpointOperation

SLACK = 0.001
"""Seconds that a logger's rounding may make the phases longer than the iteration they fill."""


@dataclass(frozen=True)
class Timing:
    """One phase of an iteration."""

    duration: Duration
    seconds: float
    logged: float
    """When it was logged: it had ended by then."""


@dataclass(frozen=True)
class Iteration:
    """What is known of an iteration once it is over."""

    number: int
    began: float | None
    """None if that is not known: of the first that was logged."""
    ended: float
    timings: Sequence[Timing] = ()
    counts: Sequence[tuple[Count, float]] = ()

    def ends(self) -> list[float]:
        """When each phase is taken to have ended.

        One after the other, the last as it was logged. If they do not fit into the iteration so, they were beside
        each other: each ended as it was logged.
        """
        end, found = self.ended, []
        for timing in reversed(self.timings):
            end = min(end, timing.logged)
            found.append(end)
            end -= timing.seconds
        if self.began is None or end >= self.began - SLACK:
            return found[::-1]
        return [timing.logged for timing in self.timings]


def record(recorder: Recorder, loops: Loops, iteration: Iteration) -> None:
    """Tell the recorder of an iteration, its phases and its counts."""
    if iteration.began is not None:
        loops.begin(iteration.number, at=iteration.began)
    ends = iteration.ends()
    phases = [
        recorder.open_phase(
            timing.duration.phase,
            timing.duration.attributes,
            waits=timing.duration.waits,
            inside=loops.current or NOWHERE,
            at=end - timing.seconds,
        )
        for timing, end in zip(iteration.timings, ends, strict=True)
    ]
    if loops.reports:
        for count, amount in iteration.counts:
            _count(recorder, loops, phases, count, amount)
    for phase, end in zip(phases, ends, strict=True):
        recorder.close_phase(phase, at=end)
        if loops.reports and _saves(phase):
            tier = phase.metric_attributes.get(attr.CHECKPOINT_TIER.name)
            recorder.saved(None if tier is None else str(tier), iteration.number)
    loops.end(at=iteration.ended)
    loops.close()


def _count(recorder: Recorder, loops: Loops, phases: Sequence[Phase], count: Count, amount: float) -> None:
    for phase in phases:
        if phase.name == count.phase and phase.metric_attributes.get(attr.ROLE.name) == count.role:
            recorder.add(phase, **{count.keyword: amount})
            return
    # How long it took is not logged, but how much it was.
    recorder.instruments.add(count.metric, amount, count.attributes)
    if loops.current is not None:
        loops.current.count(f"{count.phase}.{count.keyword}", amount)


def _saves(phase: Phase) -> bool:
    return phase.metric_attributes.get(attr.CHECKPOINT_OPERATION.name) == CheckpointOperation.SAVE.value
