"""A reward function, as `--reward.remote_url` names one."""

from typing import Any

import models  # type: ignore[import-not-found]
import torch


def reward_func(queries: list[str], prompts: list[str], labels: list[str]) -> dict[str, Any]:
    models.spend("reward", 0.005)
    right = [float(query.endswith(tuple("02468"))) for query in queries]
    return {
        "rewards": torch.tensor(right),
        "scores": torch.tensor(right),
        "extra_logs": {"right": torch.tensor(right)},
    }
