"""What a runner says of itself: who runs, on which devices, and where it saves."""

from __future__ import annotations

import os
from importlib import metadata
from typing import Any

from rlotel.derived import Hardware
from rlotel.recorder import Recorder
from rlotel.semconv.attributes import Role

POLICIES = ("policy", "actor", "student")
"""What algorithms call the model that learns: before 4.0, from 4.0 on, and that of a distillation."""


def identify(recorder: Recorder, runner: Any) -> None:
    """Tell who runs, and on how many GPUs."""
    env = getattr(runner.env, "unwrapped", runner.env)
    policy = next((getattr(runner.alg, name) for name in POLICIES if hasattr(runner.alg, name)), None)
    recorder.identify(
        system="rsl-rl",
        system_version=_version(),
        algorithm=type(runner.alg).__name__,
        model=None if policy is None else type(policy).__name__,
        environment=getattr(getattr(env, "spec", None), "id", None) or type(env).__name__,
    )
    kind, _, index = str(runner.device).partition(":")
    if kind == "cuda":  # one for each rank, which makes the rollouts and learns from them
        recorder.equip(Hardware(gpus=int(getattr(runner, "gpu_world_size", 1))))
        recorder.process.use_gpus(Role.SHARED.value, _visible(int(index or 0)))


def log_dir(runner: Any) -> str | None:
    """Where checkpoints go. From 3.2 on the logger knows."""
    found: str | None = getattr(getattr(runner, "logger", runner), "log_dir", None)
    return found


def _version() -> str | None:
    try:
        return metadata.version("rsl-rl-lib")
    except metadata.PackageNotFoundError:  # a checkout that is on the path
        return None


def _visible(index: int) -> str:
    """A device of this process, as `CUDA_VISIBLE_DEVICES` would name it."""
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return visible[index] if index < len(visible) else str(index)
