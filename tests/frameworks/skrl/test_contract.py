"""The integration of skrl keeps what every one promises."""

from types import MappingProxyType

import pytest

from tests.frameworks.contract import Contract
from tests.frameworks.running import Run
from tests.frameworks.skrl.conftest import ITERATIONS


class TestContract(Contract):
    framework = "skrl"
    identity = MappingProxyType(
        {
            "rl.system": "skrl",
            "rl.algorithm": "PPO",
            "rl.model.name": "Policy",
            "rl.environment.name": "Points",
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
            "rl.entropy",
            "rl.learning_rate",
            "rl.environment.reward.mean",
            "rl.environment.episode.length.mean",
            "rl.loop.idle.ratio",
        }
    )
    modules = ("skrl.agents.torch.base", "skrl.trainers.torch.base", "skrl.trainers.torch.step")

    @pytest.fixture
    def seen(self, ppo: Run) -> Run:
        return ppo


class TestContractWithEvaluations(TestContract):
    counted = frozenset({"rl.evaluation.score", "rl.checkpoint.duration", "rl.checkpoint.step"})

    @pytest.fixture
    def seen(self, evaluated: Run) -> Run:
        return evaluated
