"""What every integration promises, of a PPO with env runners and an evaluation beside training."""

import importlib.metadata

import pytest

from tests.frameworks.contract import Contract
from tests.frameworks.running import Run

IDENTITY = {
    "rl.system": "ray-rllib",
    "rl.system.version": importlib.metadata.version("ray"),
    "rl.algorithm": "PPO",
    "rl.environment.name": "CartPole-v1",
}


class TestContract(Contract):
    framework = "rllib"
    identity = IDENTITY
    iterations = (1, 2, 3)
    phases = frozenset({"sample", "train"})
    counted = frozenset(
        {
            "rl.sample.samples", "rl.sample.episodes", "rl.sample.steps", "rl.train.steps", "rl.train.loss",
            "rl.environment.reward.mean", "rl.environment.episode.length.mean", "rl.entropy", "rl.kl.divergence",
            "rl.learning_rate", "rl.sample.staleness", "rl.samples.rate", "rl.sync.duration",
            "rl.worker.duration", "rl.evaluation.score",
        }
    )  # fmt: skip
    modules = (
        "ray.rllib.algorithms.algorithm",
        "ray.rllib.algorithms.algorithm_config",
        "ray.rllib.algorithms.dqn.dqn",
        "ray.rllib.algorithms.impala.impala",
        "ray.rllib.algorithms.impala.impala_learner",
        "ray.rllib.algorithms.marwil.marwil",
        "ray.rllib.algorithms.ppo.ppo",
        "ray.rllib.algorithms.utils",
        "ray.rllib.core.learner.learner",
        "ray.rllib.core.learner.learner_group",
        "ray.rllib.core.learner.torch.torch_learner",
        "ray.rllib.env.env_runner_group",
        "ray.rllib.env.multi_agent_env_runner",
        "ray.rllib.env.single_agent_env_runner",
        "ray.rllib.execution.rollout_ops",
        "ray.rllib.utils.replay_buffers.episode_replay_buffer",
        "ray.rllib.utils.replay_buffers.prioritized_episode_buffer",
        "ray.tune.impl.tuner_internal",
        "ray.tune.tune",
    )

    @pytest.fixture
    def seen(self, ppo: Run) -> Run:
        return ppo
