"""The GPUs of a trainer that makes its rollouts and learns from them in the same process."""

from __future__ import annotations

import os

from rlotel.derived import Hardware
from rlotel.recorder import Recorder
from rlotel.semconv.attributes import Role


def use(recorder: Recorder, device: object, ranks: int = 1) -> None:
    """Tell of the GPU that PyTorch calls `device`, one in each rank; any other device is none."""
    kind, _, index = str(device).partition(":")
    if kind == "cuda":
        recorder.equip(Hardware(gpus=ranks))
        recorder.process.use_gpus(Role.SHARED.value, _visible(int(index or 0)))


def _visible(index: int) -> str:
    """A device of this process, as `CUDA_VISIBLE_DEVICES` would name it."""
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return visible[index] if index < len(visible) else str(index)
