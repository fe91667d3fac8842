"""The iterations of a trainer that is followed, and the phases that its watched functions are.

What the integrations have in common: each says where an iteration begins and ends, and which function is which
phase; what is nested, late, evaluated, repeated or done on another rank is seen to here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

from rlotel import context
from rlotel.instruments import Value
from rlotel.integrations import tables
from rlotel.integrations.tables import Gauges, Timed
from rlotel.patching import Call, Observer
from rlotel.phases import Interval, Loop, Phase
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv.attributes import CheckpointOperation, PhaseName
from rlotel.words import SAMPLE, SYNC, TRAIN

EVALUATE = PhaseName.EVALUATE.value

NOWHERE = Interval("nowhere", 0.0, 0, ended=True)
"""What a phase is inside of that comes after an iteration has ended and before it was logged: no loop."""

Key = tuple[str, str | None]
"""A phase's name and role."""


Counts = Callable[[Call], Mapping[str, float | None]]
"""From a call that has returned to what it counts."""


class Bracket(TypedDict):
    """What `Patches.watch` is given to make a phase of a function."""

    before: Observer
    after: Observer
    failed: Observer


@dataclass
class Setup:
    """What a trainer's configuration says of its phases; None where it does not."""

    sample_batch_size: int | None = None
    """Rollouts that one sample phase asks for."""
    train_batch_size: int | None = None
    """Rows of one optimizer step."""
    sync_destination: str | None = None
    """The engine that gets new weights, such as vllm."""
    checkpoint_tier: str | None = None
    """Where checkpoints go, see `CheckpointTier`."""


class Loops:
    """The iterations of one trainer in this process.

    On a rank other than 0 the same calls give spans in the trace of rank 0's iteration and `rl.worker.duration`:
    what an iteration counts and what a framework logs are reported by rank 0 alone.

    Used by the thread or task that runs the loop; phases may be opened in others.

    Args:
        recorder: where they are told.
        alone: whether the framework runs one loop, in a process that may be anywhere. What its environment says of
            ranks is then of something else, such as the node's among those that its cluster was started on.
    """

    def __init__(self, recorder: Recorder, *, alone: bool = False) -> None:
        self.recorder = recorder
        self._alone = alone
        self.setup = Setup()
        """To be filled in as the trainer's configuration is met."""
        self.current: Loop | None = None
        """The iteration that has not been closed; it may have ended, and wait for what is logged of it."""
        self.ended: float | None = None
        """When it ended."""
        self.closing: list[Callable[[], None]] = []
        """What is to be done before an iteration closes: add what only a whole one tells."""
        self._entered: context.Entered | None = None
        self._stopped = False
        self._phases: dict[Key, Phase] = {}
        self._last: int | None = None
        self._returns = 0

    @property
    def reports(self) -> bool:
        """Whether this is the rank that reports what all ranks know."""
        return self._alone or self.recorder.process.rank == 0

    # Iterations.

    def begin(self, iteration: int | None = None, *, at: float | None = None) -> None:
        """An iteration begins, or began `at` an earlier `recorder.now()`; one that is open is closed.

        Without a number it is the one after the last, from 1.
        """
        self.close()
        last = self._last
        number = self._last = (last or 0) + 1 if iteration is None else int(iteration)
        if self.reports:
            self.current = self.recorder.open_loop(number, at=at)
        else:
            self._returns += last is not None and number <= last
            self.current = self.recorder.join_loop(number, self._returns, at=at)
        if self.current is not None:
            self._entered = context.enter(self.current)

    def another(self) -> None:
        """Another training begins in this process, which has numbers of its own."""
        self.recorder.iterations.another()

    def end(self, error: BaseException | None = None, *, at: float | None = None) -> None:
        """The iteration is over, with what was logged of it still to come; a failed one is closed at once."""
        self._leave()
        if self.current is not None and self.ended is None:
            self.ended = self.recorder.now() if at is None else at
        if error is not None:
            self.close(error)

    def resume(self) -> None:
        """The iteration that has ended was only a part of one: it goes on."""
        if self.current is not None and self.ended is not None:
            self.ended = None
            self._entered = context.enter(self.current)

    def close(self, error: BaseException | None = None) -> None:
        """All is known of the iteration: it is recorded, with the time at which it ended."""
        self._leave()
        loop = self.current
        if loop is None:
            return
        for tell in self.closing:
            with self.recorder.faults.contain("the end of an iteration"):
                tell()
        ended = self.recorder.now() if self.ended is None else self.ended
        self.current, self.ended, self._phases = None, None, {}
        if self.reports:
            self.recorder.close_loop(loop, error, at=ended)
        else:
            loop.close(ended)

    def forget(self) -> None:
        """The iteration that began is none: training was over. It leaves no trace."""
        self._leave()
        loop, self.current, self.ended, self._phases = self.current, None, None, {}
        if loop is not None:
            self.recorder.ages.end(loop)
            loop.abandon()

    def stop(self) -> None:
        """Nothing is watched any more: an iteration that has ended is recorded, any other leaves no trace."""
        self._stopped = True
        if self.ended is None:
            self.forget()
        else:
            self.close()

    def _leave(self) -> None:
        if self._stopped and isinstance(context.current(), Phase):
            return  # as that ends, the iteration would be current again
        entered, self._entered = self._entered, None
        if entered is not None:
            context.leave(entered)

    # Phases.

    def phase(self, timed: Timed, counts: Counts | None = None) -> Bracket:
        """Make a phase of each call of a function: `patches.watch(target, **loops.phase(Timed(TRAIN)))`.

        Args:
            timed: what the function is.
            counts: what a call did, from the call with its result: keywords of `add()`. Not asked of a call that
                failed, that is no phase of its own (as in an evaluation), or on another rank than 0.
        """
        after = self.shut if counts is None else partial(self._count, counts)
        return {"before": partial(self._enter, timed), "after": after, "failed": self.shut}

    def _enter(self, timed: Timed, call: Call) -> None:
        self.open(timed, call)

    def _count(self, counts: Counts, call: Call) -> None:
        phase: Phase | None = call.notes.get("phase")
        try:
            if phase is not None and self.reports:
                self.recorder.add(phase, **counts(call))
        finally:
            self.shut(call)

    def open(
        self, timed: Timed, call: Call, *, inside: Interval | None = None, at: float | None = None
    ) -> Phase | None:
        """A watched call that is a phase begins, or began `at` an earlier `recorder.now()`; `shut` ends it.

        None, and nothing to end, where it says no more than what it is inside of: a phase of the same name, or an
        evaluation, whose rollouts are none of training.

        Args:
            timed: what it is.
            call: the call that it is, which keeps the phase for `shut`.
            inside: what it belongs to, where that is not what is current here.
            at: when it began, if not now.
        """
        here = context.current()
        if inside is None and (within(here, timed.phase) or within(here, EVALUATE)):
            return None
        if inside is None and self.ended is not None and not isinstance(here, Phase):
            inside = NOWHERE
        metric, span = self._attributes(timed)
        phase = self.recorder.open_phase(timed.phase, metric, span, waits=timed.waits, inside=inside, at=at)
        if phase is not None:
            if phase.loop is self.current:
                self._phases[timed.phase, timed.role] = phase
            call.notes["timed"], call.notes["phase"] = timed, phase
            call.notes["entered"] = context.enter(phase)
        return phase

    def shut(self, call: Call, *, at: float | None = None) -> None:
        """It ends, as `after` and as `failed` of a watch, or ended `at` an earlier `recorder.now()`."""
        phase: Phase | None = call.notes.pop("phase", None)
        if phase is None:
            return
        context.leave(call.notes.pop("entered"))
        if self._stopped:
            self._leave()
        self.recorder.close_phase(phase, call.error, at=at)
        timed: Timed = call.notes["timed"]
        saved = timed.operation is CheckpointOperation.SAVE and timed.durable
        if saved and call.error is None and self.reports:
            loop = phase.loop or self.current
            step = self._last if loop is None else loop.iteration
            self.recorder.saved(self.setup.checkpoint_tier, step)

    def latest(self, name: str, role: str | None = None) -> Phase | None:
        """The last phase of that name and role in this iteration, open or not."""
        return self._phases.get((name, role))

    def _attributes(self, timed: Timed) -> tuple[dict[str, Value | None], dict[str, int | None]]:
        """Those of the phase's duration, and those of its span alone."""
        metric: dict[str, Value | None] = {attr.ROLE.name: timed.role and str(timed.role)}
        span: dict[str, int | None] = {}
        if timed.phase == SAMPLE:
            metric[attr.SAMPLE_KIND.name] = timed.kind and str(timed.kind)
            span[attr.SAMPLE_BATCH_SIZE.name] = self.setup.sample_batch_size
        elif timed.phase == TRAIN:
            span[attr.TRAIN_BATCH_SIZE.name] = self.setup.train_batch_size
        elif timed.phase == SYNC:
            metric[attr.SYNC_SOURCE.name] = "learner"
            metric[attr.SYNC_DESTINATION.name] = self.setup.sync_destination
        elif timed.operation is not None:
            metric[attr.CHECKPOINT_OPERATION.name] = timed.operation.value
            metric[attr.CHECKPOINT_TIER.name] = self.setup.checkpoint_tier
            metric[attr.CHECKPOINT_BLOCKING.name] = True
        return metric, span

    # Numbers. On other ranks than 0 they are left out: they are of all ranks, or would be counted once for each.

    def add(self, name: str, role: str | None = None, **counts: float | None) -> None:
        """Count what the latest phase of that name and role did in this iteration; without one nothing is."""
        phase = self.latest(name, role)
        if phase is not None and self.reports:
            self.recorder.add(phase, **counts)

    def tell(self, logged: Mapping[str, Any], table: Gauges) -> None:
        """Set the gauges of what was logged of training."""
        if self.reports:
            tables.tell(self.recorder, logged, table)

    def evaluated(self, scores: Mapping[str, Any], prefix: str = "") -> None:
        """Set the scores of an evaluation, by their names without `prefix`; those without it are left out."""
        if self.reports:
            tables.evaluated(self.recorder, scores, prefix)


def within(interval: Interval | None, name: str) -> bool:
    """Whether a phase of that name is open around here."""
    while isinstance(interval, Phase):
        if interval.name == name and not interval.ended:
            return True
        interval = interval.inside
    return False
