"""What one key of somebody's log means in our words, as users write it: not yet held against the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rlotel.semconv.types import Metric

How = Literal["gauge", "seconds", "milliseconds", "total", "each"]


@dataclass(frozen=True)
class Meaning:
    """What one key means; `Table` says what is wrong with it, and of which key."""

    how: How
    what: str | Metric
    """A metric, or for durations a phase."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """By their full names, or the last part of these."""
    scale: float = 1.0
    zero_is_unknown: bool = False


def gauge(
    metric: str | Metric, *, scale: float = 1.0, zero_is_unknown: bool = False, **attributes: str
) -> Meaning:
    """A value as it is at present: `gauge("rl.train.loss", type="policy")`.

    A metric that needs no more said of it can also be given alone, as text or as an object of `rlotel.semconv`.

    Args:
        metric: a gauge of the model.
        scale: what the logged value is multiplied with to be in the metric's unit: 0.01 for percent.
        zero_is_unknown: whether 0 is logged where the value is not known.
        **attributes: attributes of the metric, by the last part of their names: `type`, `role`, `reference`.
    """
    return Meaning("gauge", metric, attributes, scale, zero_is_unknown)


def seconds(phase: str | Metric, **attributes: str | bool) -> Meaning:
    """How long a phase took in this step, in seconds: `seconds("train", role="critic")`.

    Args:
        phase: sample, reward, train, sync, checkpoint, or a word such as logprob, advantage, evaluate, data; the
            metric of its duration will do too. `loop` is the whole iteration.
        **attributes: attributes of the duration, by the last part of their names: `role`, `kind`, `operation`.
    """
    return Meaning("seconds", phase, attributes)


def milliseconds(phase: str | Metric, **attributes: str | bool) -> Meaning:
    """How long a phase took in this step, in milliseconds; otherwise as `seconds`."""
    return Meaning("milliseconds", phase, attributes)


def total(metric: str | Metric, **attributes: str) -> Meaning:
    """A count over the whole run so far, such as all tokens: each step counts what came since the one before.

    The first value counts nothing, since a run that was resumed does not begin at 0; nor does one that went back.

    Args:
        metric: a counter of the model, in its unit.
        **attributes: attributes of the metric, by the last part of their names: `type`, `role`.
    """
    return Meaning("total", metric, attributes)


def each(metric: str | Metric, **attributes: str) -> Meaning:
    """A count of this step alone; otherwise as `total`."""
    return Meaning("each", metric, attributes)


MAKERS: Mapping[str, Callable[..., Meaning]] = {
    "gauge": gauge,
    "seconds": seconds,
    "milliseconds": milliseconds,
    "total": total,
    "each": each,
}
"""By the words with which a file says the same."""
