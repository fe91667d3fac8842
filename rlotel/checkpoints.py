"""Checkpoints: what is being saved, what could be restored, and what of the run would be lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from rlotel.instruments import Attributes, Instruments, Readings, Value
from rlotel.labels import Labels
from rlotel.phases import Interval, Phase
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.words import CHECKPOINT

SAVE = attr.CheckpointOperation.SAVE.value


class Checkpoints:
    """The checkpoints of one process.

    Args:
        instruments: where they are reported.
        labels: makes a tier what the model says it is.
        now: the clock that ages are read from.
        open_now: what is open, in the thread that exports.
    """

    def __init__(
        self,
        instruments: Instruments,
        labels: Labels,
        now: Callable[[], float],
        open_now: Callable[[], list[Interval]],
    ) -> None:
        self._instruments = instruments
        self._labels = labels
        self._now = now
        self._open_now = open_now
        self.reset()
        instruments.watch(m.CHECKPOINT_AGE, self._ages)
        instruments.watch(m.CHECKPOINT_IN_PROGRESS, self._in_progress)
        # It stays the step to come back to however many loops end before the next checkpoint.
        instruments.watch(m.CHECKPOINT_STEP, self._last_steps)

    def reset(self) -> None:
        """Forget everything, as a forked child must."""
        self._lock = threading.RLock()
        self._start = self._now()
        self._durable: dict[str | None, float] = {}
        self._steps: dict[str | None, float] = {}

    def expect(self, tier: str | None) -> None:
        """Checkpoints of this tier will be saved: until the first one is, all since the start would be lost."""
        with self._lock:
            self._durable.setdefault(tier, self._start)

    def durable(self, tier: str | None, step: int | None) -> None:
        """A checkpoint of this tier can be restored from now on; `step` is the one it holds, if that is known."""
        tier = self._labels.typed({attr.CHECKPOINT_TIER.name: tier}).get(attr.CHECKPOINT_TIER.name)
        number = None if step is None else self._instruments.amount(m.CHECKPOINT_STEP.name, step)
        with self._lock:
            self._durable[tier] = self._now()
            if number is None:
                self._steps.pop(tier, None)
            else:
                self._steps[tier] = number

    def begin(self, phase: Phase) -> None:
        """An operation begins. A save says that checkpointing is on, also if it fails."""
        if phase.metric_attributes.get(attr.CHECKPOINT_OPERATION.name) == SAVE:
            tier = phase.metric_attributes.get(attr.CHECKPOINT_TIER.name)
            self.expect(None if tier is None else str(tier))

    def end(self, phase: Phase) -> None:
        """An operation has ended."""
        done: dict[str, Value] = _of(phase.metric_attributes)
        if phase.error is not None:
            done[attr.ERROR_TYPE.name] = phase.error
        self._instruments.add(m.CHECKPOINT_OPERATIONS, 1, done)

    def _ages(self) -> Readings:
        now = self._now()
        with self._lock:
            return [(now - saved, _tier(tier)) for tier, saved in self._durable.items()]

    def _last_steps(self) -> Readings:
        with self._lock:
            return [(step, _tier(tier)) for tier, step in self._steps.items()]

    def _in_progress(self) -> Readings:
        now = self._now()
        oldest: dict[tuple[tuple[str, Value], ...], float] = {}
        for one in self._open_now():
            if isinstance(one, Phase) and one.name == CHECKPOINT:
                operation = tuple(_of(one.metric_attributes).items())
                oldest[operation] = min(one.started, oldest.get(operation, one.started))
        return [(now - started, dict(operation)) for operation, started in oldest.items()]


def _of(attributes: Mapping[str, Value]) -> dict[str, Value]:
    names = (attr.CHECKPOINT_OPERATION.name, attr.CHECKPOINT_TIER.name)
    return {name: attributes[name] for name in names if name in attributes}


def _tier(tier: str | None) -> Attributes:
    return {} if tier is None else {attr.CHECKPOINT_TIER.name: tier}
