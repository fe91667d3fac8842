"""What every integration promises, of SkyRL: synchronous, asynchronous, and in a task of Ray."""

from importlib import metadata
from types import MappingProxyType

import pytest

from tests.frameworks.contract import Contract
from tests.frameworks.running import Run, release
from tests.frameworks.skyrl.real.conftest import environment

unpacked = release("skyrl")
VERSION = metadata.version("skyrl") if unpacked is None else unpacked.name.partition("-")[2]
IDENTITY = {
    "rl.system": "skyrl",
    "rl.system.version": VERSION,
    "rl.model.name": "tiny-qwen2",
    "rl.environment.name": "add",
}
COUNTED = frozenset(
    {
        "rl.checkpoint.step",
        "rl.entropy",
        "rl.environment.episode.length.mean",
        "rl.environment.episode.turns.mean",
        "rl.environment.reward.mean",
        "rl.evaluation.score",
        "rl.grad_norm",
        "rl.learning_rate",
        "rl.loop.idle.ratio",
        "rl.phase.flops",
        "rl.reward.duration",
        "rl.sample.episodes",
        "rl.sample.samples",
        "rl.sample.steps",
        "rl.sample.tokens",
        "rl.sample.truncated.ratio",
        "rl.step.duration",
        "rl.sync.duration",
        "rl.tokens.rate",
        "rl.train.clip.ratio",
        "rl.train.loss",
        "rl.train.steps",
        "rl.train.tokens",
    }
)
"""Weights are sent once more than there are iterations, so that `sync` is no phase that is counted by them."""


class SkyRL(Contract):
    framework = "skyrl"
    modules = (
        "skyrl_gym",
        "skyrl.train.entrypoints.main_base",
        "skyrl.train.fully_async_trainer",
        "skyrl.train.trainer",
        "skyrl.train.utils.tracking",
        "skyrl.train.utils.utils",
    )
    counted = COUNTED

    def environment(self) -> dict[str, str]:
        return environment()


class TestSynchronous(SkyRL):
    identity = MappingProxyType({**IDENTITY, "rl.algorithm": "PPO"})
    iterations = (1, 2, 3)
    phases = frozenset({"sample", "logprob", "advantage", "train"})
    counted = COUNTED | {"rl.kl.divergence"}

    @pytest.fixture
    def seen(self, synchronous: Run) -> Run:
        return synchronous


class TestAsynchronous(SkyRL):
    identity = MappingProxyType({**IDENTITY, "rl.algorithm": "GRPO"})
    iterations = (1, 2, 3, 4)
    phases = frozenset({"sample", "train"})
    counted = COUNTED | {"rl.sample.staleness"}
    overlaps = True
    test_uninstrument_leaves_no_trace_in_the_framework = None  # type: ignore[assignment]  # as above

    @pytest.fixture
    def seen(self, asynchronous: Run) -> Run:
        return asynchronous


class TestTask(SkyRL):
    identity = MappingProxyType({**IDENTITY, "rl.algorithm": "GRPO"})
    iterations = (1, 2)
    phases = frozenset({"sample", "logprob", "advantage", "train"})
    test_uninstrument_leaves_no_trace_in_the_framework = None  # type: ignore[assignment]  # as above

    @pytest.fixture
    def seen(self, task: Run) -> Run:
        return task

    def test_the_loop_is_in_another_process_than_the_launcher(self, seen: Run) -> None:
        (loop,) = {point.resource["service.instance.id"] for point in seen.capture.points("rl.loop.duration")}
        (launcher,) = {point.resource["service.instance.id"] for point in seen.capture.points("rl.run.status")}
        assert loop != launcher
        progress = {point.resource["service.instance.id"] for point in seen.capture.points("rl.progress.age")}
        assert progress <= {loop}
