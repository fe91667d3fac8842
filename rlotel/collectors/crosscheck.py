"""The hardware's own word on MFU beside ours: if they are far apart, the FLOP formula or the peak is wrong.

Tensor-core activity times clock over highest clock is what the update did of what the GPUs could do, by their own
counters. It is compared with `rl.train.mfu` over several loops, and only where both speak of the same GPUs: in the
process that runs the loop and reads the GPUs, while it trains, of the node's GPUs that train.
"""

from __future__ import annotations

from collections.abc import Collection

from rlotel.collectors.sampling import Sample
from rlotel.errors import log
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.words import TRAIN

FINDING = "mfu_mismatch"
FAR = 0.10
"""Difference of the two, as shares, that is a finding."""
LEAST_LOOPS = 3
LEAST_SECONDS = 30.0
"""Seconds of training that were watched from one reading to the next without a break."""


class CrossCheck:
    """Compares the two in one process, once there is enough of both."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._active = self._seconds = 0.0
        self._flops = self._capacity = 0.0
        self._loops = 0
        self._found = False

    def look(self, before: Sample | None, sample: Sample, used: Collection[str]) -> None:
        """Take a sample into account.

        Args:
            before: the sample before it.
            sample: the latest.
            used: UUIDs of the node's GPUs that the run trains on.
        """
        if self._found:
            return
        if before is not None:
            self._add_hardware(before, sample, used)
        self._add_loops()
        if self._loops >= LEAST_LOOPS and self._seconds >= LEAST_SECONDS:
            self._judge(self._flops / self._capacity, self._active / self._seconds)

    def _add_hardware(self, before: Sample, sample: Sample, used: Collection[str]) -> None:
        training = self._recorder.ages.open_since(TRAIN)
        values = [value for value, labels in sample.points.get(m.GPU_OFU, []) if labels[attr.HW_ID.name] in used]
        if training is not None and training <= before.at and values:
            seconds = sample.at - before.at
            self._active += seconds * sum(values) / len(values)
            self._seconds += seconds

    def _add_loops(self) -> None:
        instruments = self._recorder.instruments
        capacity = instruments.value(m.PHASE_FLOPS_CAPACITY, {attr.PHASE_NAME.name: TRAIN}) or 0.0
        mfu = instruments.value(m.TRAIN_MFU)
        if capacity > self._capacity and mfu is not None:
            self._flops += mfu * (capacity - self._capacity)
            self._capacity = capacity
            self._loops += 1

    def _judge(self, ours: float, theirs: float) -> None:
        if abs(ours - theirs) <= FAR:
            return
        self._found = True
        self._recorder.instruments.add(m.FINDINGS, 1, {attr.FINDING_NAME.name: FINDING})
        log.warning(
            "rlotel: finding %s: rl.train.mfu is %.0f %%, but the GPUs' tensor cores did %.0f %% of their most "
            "in the update. Are the model's FLOPs right, the peak (RLOTEL_PEAK_FLOPS) and the GPUs (RLOTEL_GPUS)?",
            FINDING,
            100 * ours,
            100 * theirs,
        )
