"""What a runner says of itself: who runs, on which devices, and where it saves."""

from __future__ import annotations

from typing import Any

from rlotel.integrations import devices
from rlotel.integrations.configuration import version
from rlotel.integrations.loops import Setup
from rlotel.recorder import Recorder

POLICIES = ("policy", "actor", "student")
"""What algorithms call the model that learns: before 4.0, from 4.0 on, and that of a distillation."""


def identify(recorder: Recorder, runner: Any) -> None:
    """Tell who runs, and on how many GPUs."""
    env = getattr(runner.env, "unwrapped", runner.env)
    policy = next((getattr(runner.alg, name) for name in POLICIES if hasattr(runner.alg, name)), None)
    recorder.identify(
        system="rsl-rl",
        system_version=version("rsl-rl-lib"),
        algorithm=type(runner.alg).__name__,
        model=None if policy is None else type(policy).__name__,
        environment=getattr(getattr(env, "spec", None), "id", None) or type(env).__name__,
    )
    devices.use(recorder, runner.device, ranks=world_size(runner))


def log_dir(runner: Any) -> str | None:
    """Where checkpoints go. From 3.2 on the logger knows."""
    found: str | None = getattr(getattr(runner, "logger", runner), "log_dir", None)
    return found


def batches(runner: Any) -> Setup:
    """How many rows a rollout of all ranks asks for, and an optimizer step."""
    rows = runner.cfg["num_steps_per_env"] * runner.env.num_envs * world_size(runner)
    batches = getattr(runner.alg, "num_mini_batches", None)
    return Setup(sample_batch_size=rows, train_batch_size=rows // batches if batches else None)


def world_size(runner: Any) -> int:
    """The ranks that learn together."""
    return int(getattr(runner, "gpu_world_size", 1))
