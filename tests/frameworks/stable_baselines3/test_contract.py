"""The integration of Stable-Baselines3 keeps what every one promises."""

from types import MappingProxyType

import pytest

from tests.frameworks.contract import Contract
from tests.frameworks.running import Run
from tests.frameworks.stable_baselines3.conftest import ITERATIONS


class TestContract(Contract):
    framework = "stable_baselines3"
    identity = MappingProxyType(
        {
            "rl.system": "stable-baselines3",
            "rl.algorithm": "PPO",
            "rl.model.name": "ActorCriticPolicy",
            "rl.environment.name": "Point-v0",
        }
    )
    iterations = range(1, ITERATIONS + 1)
    phases = frozenset({"sample", "train"})
    counted = frozenset(
        {
            "rl.sample.samples",
            "rl.sample.steps",
            "rl.sample.episodes",
            "rl.samples.rate",
            "rl.step.duration",
            "rl.train.steps",
            "rl.train.loss",
            "rl.train.clip.ratio",
            "rl.kl.divergence",
            "rl.entropy",
            "rl.learning_rate",
            "rl.environment.reward.mean",
            "rl.environment.episode.length.mean",
            "rl.loop.idle.ratio",
        }
    )
    modules = tuple(
        f"stable_baselines3.common.{name}"
        for name in (
            "base_class",
            "on_policy_algorithm",
            "off_policy_algorithm",
            "evaluation",
            "callbacks",
            "logger",
            "env_util",
        )
    )

    @pytest.fixture
    def seen(self, ppo: Run) -> Run:
        return ppo


class TestContractWithEvaluations(TestContract):
    counted = frozenset({"rl.evaluation.score", "rl.checkpoint.duration", "rl.checkpoint.step"})

    @pytest.fixture
    def seen(self, evaluated: Run) -> Run:
        return evaluated
