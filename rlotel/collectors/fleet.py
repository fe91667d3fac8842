"""What the GPUs found here say of those of the run: the peak that MFU is measured against, and their number.

Settings and integrations know better, and win. What is not known for sure stays unknown, and MFU absent, with one
line that says why as soon as FLOPs are counted.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from rlotel import flops
from rlotel.collectors.reader import DTYPE
from rlotel.collectors.visible import VISIBLE, GpuId, assigned, visible
from rlotel.derived import Hardware
from rlotel.errors import log
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m

_RANKED = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JOB_COMPLETION_INDEX")
"""Variables of processes that are one of several; `WORLD_SIZE` says of how many."""


class Fleet:
    """The GPUs of the run, as far as the process with its loop can see them.

    Args:
        recorder: of the session.
        environ: the process's environment, as it is when it is looked at: frameworks set theirs late.
    """

    def __init__(self, recorder: Recorder, environ: Mapping[str, str]) -> None:
        self._recorder = recorder
        self._environ = environ
        self._no_peak = ""
        self._explained = False
        self.looked = False
        """Whether there is nothing left to look for."""

    def look(self, gpus: Sequence[GpuId]) -> None:
        """Fill in what settings and integrations left open. Once."""
        if self.looked or not gpus:
            return
        self.looked = True
        mine = visible(gpus, assigned(self._environ))
        known = self._recorder.hardware
        peak = known.peak_flops or self._peak(mine or gpus)
        count = known.gpus or self._count(mine)
        # A MIG slice has a share of the bandwidth that nothing tells.
        bandwidths = {flops.peak_bandwidth(gpu.model) if gpu.sm_share is None else None for gpu in mine or gpus}
        bandwidth = bandwidths.pop() if len(bandwidths) == 1 else None
        self._recorder.equip(Hardware(gpus=count, peak_flops=peak, peak_bandwidth=bandwidth))
        if count and peak and not known.peak_flops:
            log.info("rlotel: MFU is measured against %d GPUs of %.4g dense %s FLOP/s", count, peak, DTYPE)

    def used(self, gpus: Sequence[GpuId], roles: Mapping[str, str]) -> frozenset[str]:
        """UUIDs of the GPUs of this node that the run trains on; empty where that is not known for sure."""
        training = frozenset(uuid for uuid, role in roles.items() if role != attr.Role.ROLLOUT.value)
        if roles:
            return training
        count = self._recorder.hardware.gpus
        mine = visible(gpus, assigned(self._environ)) or ()
        if count == len(mine):
            return frozenset(gpu.uuid for gpu in mine)
        whole_nodes = count is not None and len(gpus) > 0 and count % len(gpus) == 0
        return frozenset(gpu.uuid for gpu in gpus) if whole_nodes else frozenset()

    def explain(self) -> None:
        """Say once why there is no MFU, if there could be one: FLOPs were counted."""
        if self._explained or not self.looked or self._recorder.instruments.value(m.PHASE_FLOPS) is None:
            return
        self._explained = True
        hardware = self._recorder.hardware
        missing = [
            *([] if hardware.peak_flops else [f"{self._no_peak}; set RLOTEL_PEAK_FLOPS"]),
            *([] if hardware.gpus else ["how many GPUs the run has is unknown; set RLOTEL_GPUS"]),
        ]
        if missing:
            log.warning("rlotel: MFU is absent: %s", ", and ".join(missing))

    def _peak(self, gpus: Sequence[GpuId]) -> float | None:
        peaks = {gpu.model: flops.peak_flops(gpu.model, DTYPE, sm_share=gpu.sm_share) for gpu in gpus}
        different = set(peaks.values())
        if len(different) == 1:
            peak = different.pop()
            if peak is not None:
                return peak
        names = ", ".join(repr(model) for model in peaks)
        self._no_peak = (
            f"no dense {DTYPE} peak is known for {names}"
            if None in peaks.values()
            else f"{names} have different peaks"
        )
        return None

    def _count(self, mine: Sequence[GpuId] | None) -> int | None:
        """The GPUs of a run that is this process alone; which of many it uses it has to have been told."""
        told = VISIBLE in self._environ
        if mine and self._alone() and (told or len(mine) == 1):
            return len(mine)
        return None

    def _alone(self) -> bool:
        ranked = any(self._environ.get(name) for name in _RANKED)
        if (ranked or self._environ.get("WORLD_SIZE")) and self._environ.get("WORLD_SIZE") != "1":
            return False
        return "ray" not in sys.modules and self._recorder.process.launcher
