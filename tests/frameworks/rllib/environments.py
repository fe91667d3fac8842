"""Environments and configurations for algorithms that do all of their work in this process."""

from typing import Any

import gymnasium
import numpy as np
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.tune.registry import get_trainable_cls

from rlotel.testing import StillClock

STEP = 0.25
"""Seconds of a step of the environment, by the clock of the test. Binary, so that sums are exact."""


class Steps(gymnasium.Env):  # type: ignore[misc]
    """Episodes of a number of steps, each rewarded with 1; a step takes its time by the clock of the test."""

    clock: StillClock | None = None

    def __init__(self, config: Any) -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        if config.get("continuous"):
            self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self._config = config
        self._done = 0
        self._taken = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self._taken = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        if self._done == self._config.get("breaks_after"):
            raise ValueError("it broke")
        if Steps.clock is not None:
            Steps.clock.advance(STEP)
        self._done += 1
        self._taken += 1
        over = self._taken == self._config.get("length", 10)
        return np.full(2, self._taken / 100, np.float32), 1.0, over, False, {}


def configuration(name: str, **environment: Any) -> AlgorithmConfig:
    """An algorithm without any actors."""
    config = (
        get_trainable_cls(name)
        .get_default_config()
        .environment(Steps, env_config=environment)
        .env_runners(num_env_runners=0)
        .rl_module(model_config={"fcnet_hiddens": [4]})
        .debugging(seed=1, log_level="ERROR")
    )
    if name == "PPO":
        config.training(train_batch_size_per_learner=40, minibatch_size=20, num_epochs=2)
    else:
        config.training(num_steps_sampled_before_learning_starts=10, train_batch_size_per_learner=8)
        config.reporting(min_sample_timesteps_per_iteration=30, min_time_s_per_iteration=0)
    return config
