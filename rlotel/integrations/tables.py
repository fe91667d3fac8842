"""What a framework's timers and log keys mean in our words: what the tables of integrations are made of."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlotel import gates
from rlotel.instruments import Attributes
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import CheckpointOperation, KlReference, LossType, Role, SampleKind
from rlotel.semconv.types import Metric
from rlotel.words import CHECKPOINT


@dataclass(frozen=True)
class Timed:
    """What one timer or function of a framework measures."""

    phase: str
    role: str | None = None
    """Which model it is about, where there are several."""
    kind: SampleKind | None = None
    """Of a sample phase."""
    operation: CheckpointOperation | None = None
    """Of a checkpoint phase."""
    durable: bool = True
    """Of a checkpoint that is saved: whether it is there to come back to once the call has ended."""
    same: bool = True
    """Whether it always means what our phase means, so that the framework's own seconds must equal ours."""

    def __post_init__(self) -> None:
        if (self.phase == CHECKPOINT) != (self.operation is not None):
            raise ValueError("a checkpoint, and nothing else, is saved or restored: say which by operation=")

    @property
    def waits(self) -> bool:
        """Whether the trainer only stands waiting meanwhile."""
        return self.kind is SampleKind.WAIT


@dataclass(frozen=True)
class Gauge:
    """Where a logged value goes."""

    metric: Metric
    attributes: Attributes = field(default_factory=dict)
    scale: float = 1.0
    """What it is multiplied with to be in our unit: 0.01 for percent, -1 for the negative of it."""
    zero_is_unknown: bool = False
    """Whether the framework says 0 where it does not know."""


def loss(kind: LossType, *, scale: float = 1.0) -> Gauge:
    """A part of the training loss, or all of it."""
    return Gauge(m.TRAIN_LOSS, {attr.LOSS_TYPE.name: kind.value}, scale)


def kl(reference: KlReference, *, scale: float = 1.0, zero_is_unknown: bool = False) -> Gauge:
    """A KL divergence from the policy, and to which other one."""
    return Gauge(m.KL_DIVERGENCE, {attr.KL_REFERENCE.name: reference.value}, scale, zero_is_unknown)


def of(metric: Metric, role: Role, *, scale: float = 1.0, zero_is_unknown: bool = False) -> Gauge:
    """A value of one of several models."""
    return Gauge(metric, {attr.ROLE.name: role.value}, scale, zero_is_unknown)


Gauges = Mapping[str, Gauge | tuple[Gauge, ...]]
"""Log keys, and the gauge, or the several gauges, that each feeds."""


def several(gauges: Gauge | tuple[Gauge, ...]) -> tuple[Gauge, ...]:
    """The gauges of one log key."""
    return gauges if isinstance(gauges, tuple) else (gauges,)


def tell(recorder: Recorder, logged: Mapping[str, Any], table: Gauges) -> None:
    """Set the gauges of what was logged; a value that is no number is refused, and counted as that."""
    for key, gauges in table.items():
        if (value := logged.get(key)) is None:
            continue
        with contextlib.suppress(gates.Refused):
            value = gates.number(value)
        # Else it is refused, and counted as that. It isn't looked into: that might wait for an accelerator.
        number = type(value) is float
        for gauge in several(gauges):
            if not (number and gauge.zero_is_unknown and value == 0):
                recorder.set(gauge.metric, value * gauge.scale if number else value, gauge.attributes)


def evaluated(recorder: Recorder, scores: Mapping[str, Any], prefix: str = "") -> None:
    """Set the scores of an evaluation, by their names without `prefix`; those without it are left out."""
    for key, value in scalars(scores).items():
        if key.startswith(prefix):
            recorder.set(m.EVALUATION_SCORE, value, {attr.EVALUATION_NAME.name: key.removeprefix(prefix)})


def scalars(logged: Mapping[str, Any]) -> dict[str, float]:
    """The numbers among what was logged; texts, tables and flags beside them say nothing here."""
    found = {}
    for key, value in logged.items():
        with contextlib.suppress(gates.Refused):
            found[str(key)] = gates.number(value)
    return found
