"""TRL keeps what every integration promises."""

from types import MappingProxyType

import pytest

from tests.frameworks.contract import Contract
from tests.frameworks.running import Run

RUN = frozenset(
    {
        "rl.sample.samples",
        "rl.sample.episodes",
        "rl.sample.tokens",
        "rl.samples.rate",
        "rl.tokens.rate",
        "rl.train.steps",
        "rl.train.tokens",
        "rl.train.flops",
        "rl.train.loss",
        "rl.train.clip.ratio",
        "rl.kl.divergence",
        "rl.entropy",
        "rl.grad_norm",
        "rl.learning_rate",
        "rl.environment.reward.mean",
        "rl.environment.episode.length.mean",
        "rl.sample.truncated.ratio",
        "rl.reward.zero_variance.ratio",
        "rl.loop.idle.ratio",
        "rl.evaluation.score",
        "rl.checkpoint.duration",
        "rl.checkpoint.step",
        "rl.checkpoint.age",
    }
)


class Alike(Contract):
    framework = "trl"
    identity = MappingProxyType(
        {
            "rl.system": "trl",
            "rl.algorithm": "grpo",
            "rl.model.name": "tiny-qwen2",
            "rl.environment.name": "sums",
        }
    )
    iterations = range(1, 5)
    phases = frozenset({"data", "sample", "ref_logprob", "reward", "train"})
    counted = RUN
    modules = (
        "transformers.trainer",
        "transformers.trainer_callback",
        "trl.generation.vllm_generation",
        "trl.experimental.async_grpo.async_grpo_trainer",
        "trl.experimental.async_distillation.async_distillation_trainer",
    )


class TestContract(Alike):
    @pytest.fixture
    def seen(self, grpo: Run) -> Run:
        return grpo


class TestContractOfTheOldestRelease(Alike):
    @pytest.fixture
    def seen(self, oldest: Run) -> Run:
        return oldest

    test_uninstrument_leaves_no_trace_in_the_framework = None  # type: ignore[assignment]  # of the newest one


class TestContractOnTwoRanks(Alike):
    ahead = True
    iterations = range(1, 3)
    counted = RUN | {"rl.worker.duration"}

    @pytest.fixture
    def seen(self, ranks: Run) -> Run:
        return ranks

    test_uninstrument_leaves_no_trace_in_the_framework = None  # type: ignore[assignment]  # of one rank


class TestContractOfAsyncGrpo(Contract):
    framework = "trl"
    identity = MappingProxyType({"rl.system": "trl", "rl.algorithm": "async-grpo", "rl.model.name": "tiny-qwen2"})
    iterations = range(1, 4)
    phases = frozenset({"sample", "train"})  # and sync, which there is once before the first as well
    counted = frozenset(
        {"rl.sync.duration", "rl.sample.samples", "rl.sample.staleness", "rl.train.mfu", "rl.train.tokens"}
    )
    modules = ()
    test_uninstrument_leaves_no_trace_in_the_framework = None  # type: ignore[assignment]  # of all trainers

    @pytest.fixture
    def seen(self, asynchronous: Run) -> Run:
        return asynchronous
