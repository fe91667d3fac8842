"""MFU and MBU from what was done, the time and the peak: a value between 0 and 1, or the reason for none.

Nothing is clipped. A ratio above 1 means that the count, the time or the peak is wrong, and a series that
quietly stops at 100 % would hide it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum


class Reason(str, Enum):
    """Why there is no value; the text may serve as an attribute's value."""

    UNKNOWN_WORK = "unknown_work"
    """The FLOP (or bytes) are unknown: of an unknown architecture, for instance."""
    UNKNOWN_PEAK = "unknown_peak"
    """The GPU's peak is unknown."""
    NO_TIME = "no_time"
    """No time passed, or no GPU was there for it."""
    ABOVE_ONE = "above_one"
    NEGATIVE = "negative"
    NOT_FINITE = "not_finite"


_REFUSALS = frozenset({Reason.ABOVE_ONE, Reason.NEGATIVE, Reason.NOT_FINITE})


@dataclass(frozen=True)
class Utilization:
    """A ratio in [0, 1], or why there is none."""

    value: float | None
    reason: Reason | None = None

    @property
    def refused(self) -> bool:
        """Something was computed and cannot be true: to be counted, where a mere absence is not."""
        return self.reason in _REFUSALS


def capacity(seconds: float, gpus: float, peak: float | None) -> float | None:
    """What `gpus` devices of `peak` units a second can do at most in `seconds`; None for an unknown peak.

    Capacities of different devices and intervals add up, and utilization over all of them is work ÷ sum.
    """
    return None if peak is None else seconds * gpus * peak


def utilization(work: float | None, capacity: float | None) -> Utilization:
    """Work ÷ capacity, both in the same unit (FLOP for MFU, bytes for MBU); never raises for a number."""
    if work is None:
        return Utilization(None, Reason.UNKNOWN_WORK)
    if capacity is None:
        return Utilization(None, Reason.UNKNOWN_PEAK)
    if not math.isfinite(capacity):
        return Utilization(None, Reason.NOT_FINITE)
    if capacity == 0:
        return Utilization(None, Reason.NO_TIME)
    return accept(work / capacity)


def mfu(flops: float | None, seconds: float, gpus: float, peak_flops: float | None) -> Utilization:
    """Model FLOPs utilization of `gpus` devices of `peak_flops` FLOP/s each over `seconds`."""
    return utilization(flops, capacity(seconds, gpus, peak_flops))


def mbu(moved: float | None, seconds: float, gpus: float, peak_bandwidth: float | None) -> Utilization:
    """Memory bandwidth utilization: bytes `moved` over `seconds` by devices of `peak_bandwidth` bytes/s each."""
    return utilization(moved, capacity(seconds, gpus, peak_bandwidth))


def accept(ratio: float) -> Utilization:
    """Judge a ratio that was computed here or came from a framework, as a fraction."""
    if not math.isfinite(ratio):
        return Utilization(None, Reason.NOT_FINITE)
    if ratio < 0:
        return Utilization(None, Reason.NEGATIVE)
    if ratio > 1:
        return Utilization(None, Reason.ABOVE_ONE)
    return Utilization(float(ratio))
