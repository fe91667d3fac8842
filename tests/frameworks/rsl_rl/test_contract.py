"""rsl_rl keeps what every integration promises, and has what is watched."""

import importlib
from types import MappingProxyType

import pytest

from rlotel.integrations import rsl_rl
from tests.frameworks.contract import Contract
from tests.frameworks.rsl_rl.conftest import ITERATIONS
from tests.frameworks.running import Run


class TestContract(Contract):
    framework = "rsl_rl"
    identity = MappingProxyType({"rl.system": "rsl-rl", "rl.algorithm": "PPO", "rl.environment.name": "Points"})
    iterations = range(ITERATIONS)
    phases = frozenset({"sample", "advantage", "train"})
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
            "rl.checkpoint.step",
            "rl.checkpoint.age",
        }
    )
    modules = ("rsl_rl.runners.on_policy_runner", "rsl_rl.runners.distillation_runner")

    @pytest.fixture
    def seen(self, trained: Run) -> Run:
        return trained


@pytest.mark.parametrize("runner", [rsl_rl.RUNNER, rsl_rl.DISTILLATION])
def test_the_installed_release_has_the_runners(runner: str) -> None:
    module, _, name = runner.partition(":")
    found = getattr(importlib.import_module(module), name)
    assert {"learn", "save", "load"} <= set(dir(found))
