"""What an algorithm's configuration says of the run."""

from __future__ import annotations

import sys
from typing import Any

from rlotel.derived import Hardware
from rlotel.gates import Refused, number
from rlotel.integrations.configuration import dig
from rlotel.integrations.loops import Setup
from rlotel.semconv.attributes import Role
from rlotel.words import SAMPLE, TRAIN

DESTINATION = "env_runner"
TRIAL = "__trial_info__"
"""What Tune puts into the configuration of a trial. RLlib takes it out: its algorithms do not know."""


def trial(config: object) -> str | None:
    """The id of the trial that an algorithm is made for, if Tune makes it."""
    found = dig(config, f"{TRIAL}.trial_id") if isinstance(config, dict) else None
    return found and str(found)


def identity(algorithm: str, config: object) -> dict[str, object]:
    """Who the run is."""
    return {
        "system": "ray-rllib",
        "system_version": getattr(sys.modules.get("ray"), "__version__", None),
        "algorithm": algorithm,
        "environment": environment(config),
    }


def environment(config: object) -> str | None:
    """The environment's name as it was registered, or its class's."""
    env = dig(config, "env")
    return getattr(env, "__name__", None) if isinstance(env, type) else env and str(env)


def setup(config: object) -> Setup:
    """What it says of phases."""
    return Setup(train_batch_size=dig(config, "total_train_batch_size"), sync_destination=DESTINATION)


def learners(config: object) -> int:
    """How many learner actors there are; none where the algorithm's own process learns."""
    return int(dig(config, "num_learners") or 0)


def hardware(config: object) -> Hardware:
    """The GPUs, as far as they are whole."""
    trainers = _whole(max(learners(config), 1), dig(config, "num_gpus_per_learner"))
    rollouts = _whole(dig(config, "num_env_runners"), dig(config, "num_gpus_per_env_runner"))
    if trainers is None or rollouts is None or not trainers + rollouts:
        return Hardware()
    if not rollouts:
        return Hardware(gpus=trainers, gpus_of={TRAIN: trainers})
    return Hardware(gpus=trainers + rollouts, gpus_of={TRAIN: trainers or rollouts, SAMPLE: rollouts})


def _whole(processes: Any, each: Any) -> int | None:
    try:
        gpus = number(processes or 0) * number(each or 0)
    except Refused:
        return None
    return int(gpus) if gpus.is_integer() else None


def gpu_role(config: object, *, learns: bool) -> Role | None:
    """What a worker uses its GPUs for, if it has any."""
    name = "num_gpus_per_learner" if learns else "num_gpus_per_env_runner"
    return (Role.TRAINER if learns else Role.ROLLOUT) if dig(config, name) else None
