"""What every integration promises, of OpenRLHF's own launcher with a synchronous trainer."""

import os
from collections.abc import Mapping

import pytest

from tests.frameworks import contract
from tests.frameworks.openrlhf.real.conftest import PATH
from tests.frameworks.running import Run

TRAINER = "openrlhf.trainer."


class TestContract(contract.Contract):
    framework = "openrlhf"
    identity: Mapping[str, str] = {
        "rl.system": "openrlhf",
        "rl.system.version": "0.11.2",
        "rl.algorithm": "GRPO",
        "rl.model.name": "tiny-qwen2",
        "rl.environment.name": "prompts",
    }
    iterations = (1, 2, 3, 4)
    phases = frozenset({"sample", "experience", "data", "train", "sync"})
    counted = frozenset(
        {
            "rl.sample.samples",
            "rl.sample.episodes",
            "rl.sample.tokens",
            "rl.train.steps",
            "rl.train.tokens",
            "rl.train.flops",
            "rl.train.loss",
            "rl.kl.divergence",
            "rl.entropy",
            "rl.grad_norm",
            "rl.learning_rate",
            "rl.environment.reward.mean",
            "rl.environment.episode.length.mean",
            "rl.sample.truncated.ratio",
            "rl.sample.staleness",
            "rl.reward.zero_variance.ratio",
            "rl.reward.duration",
            "rl.evaluation.score",
            "rl.checkpoint.duration",
            "rl.worker.duration",
            "rl.tokens.rate_per_gpu",
        }
    )
    modules = (
        f"{TRAINER}ppo_utils.samples_generator",
        f"{TRAINER}ppo_utils.experience_maker",
        f"{TRAINER}ray.launcher",
        f"{TRAINER}ray.ppo_actor",
        f"{TRAINER}ray.ppo_critic",
        "openrlhf.utils",
        "openrlhf.utils.agent",
    )
    elsewhere = frozenset({"rl.reward.duration"})

    @pytest.fixture
    def seen(self, sync: Run) -> Run:
        return sync

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "PYTHONPATH": os.pathsep.join(map(str, PATH))}
