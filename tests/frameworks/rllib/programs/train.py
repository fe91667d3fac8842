"""Trains with RLlib as a user does, and writes down what RLlib said of each iteration.

Usage: python train.py ALGORITHM [SETTING=VALUE ...]; ITERATIONS says how many.
"""

import functools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import ray
from ray.tune.registry import get_trainable_cls

import rlotel

FOLDER = Path(os.environ["RUN_FOLDER"])


class Breaking(gymnasium.Wrapper):  # type: ignore[misc]
    """A CartPole that breaks at its `breaks_at`-th step, in the first env runner, and never again."""

    def __init__(self, config: Any) -> None:
        super().__init__(gymnasium.make("CartPole-v1"))
        self._broken = FOLDER / "broken"
        self._left = config["breaks_at"] if config.worker_index == 1 and not self._broken.exists() else -1

    def step(self, action: Any) -> Any:
        self._left -= 1
        if not self._left:
            self._broken.touch()
            raise ValueError("the pole broke")
        return super().step(action)


def configuration(algorithm: str, settings: dict[str, Any]) -> Any:
    env = {name: settings[name] for name in ("breaks_at",) if name in settings}
    config = (
        get_trainable_cls(algorithm)
        .get_default_config()
        .environment(Breaking if env else "CartPole-v1", env_config=env)
        .env_runners(
            num_env_runners=settings.get("runners", 2),
            num_cpus_per_env_runner=0.1,
        )
        .learners(num_learners=settings.get("learners", 0), num_cpus_per_learner=0.1)
        .debugging(seed=1, log_level="ERROR")
        .fault_tolerance(
            restart_failed_env_runners=settings.get("restart", False),
            delay_between_env_runner_restarts_s=0,
            env_runner_health_probe_timeout_s=settings.get("probe", 10),
        )
    )
    if algorithm == "PPO":
        config.training(train_batch_size_per_learner=200, minibatch_size=64, num_epochs=2)
    elif algorithm in ("APPO", "IMPALA"):
        config.training(train_batch_size_per_learner=100)
        config.env_runners(rollout_fragment_length=25)
        config.reporting(min_sample_timesteps_per_iteration=600, min_time_s_per_iteration=0)
    else:
        config.training(num_steps_sampled_before_learning_starts=50, train_batch_size_per_learner=32)
        config.reporting(min_sample_timesteps_per_iteration=60, min_time_s_per_iteration=0)
    if "evaluate" in settings:
        config.evaluation(
            evaluation_interval=2,
            evaluation_duration=settings["evaluate"],
            evaluation_num_env_runners=settings.get("evaluators", 1),
            evaluation_parallel_to_training=settings.get("parallel", False),
        )
    return config


def plain(value: Any) -> Any:
    """A result as JSON."""
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, (int, float, str, bool)) or value is None:
        return value
    return float(value) if isinstance(value, np.generic) else str(value)


def count_steps() -> list[int]:
    """Counts the steps of all optimizers of this process."""
    from torch.optim import Adam

    done = [0]
    step = Adam.step

    @functools.wraps(step)
    def counting(*args: Any, **kwargs: Any) -> Any:
        done[0] += 1
        return step(*args, **kwargs)

    Adam.step = counting
    return done


def main(name: str, **settings: Any) -> None:
    """Trains."""
    get_trainable_cls(name)  # imports it
    rlotel.instrument()
    config = configuration(name, settings)
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    steps = count_steps()
    algorithm = config.build_algo()
    started = time.perf_counter()
    for _ in range(int(os.environ.get("ITERATIONS", "3"))):
        result = algorithm.train()
        result.pop("config")
        with (FOLDER / "logged.jsonl").open("a") as file:
            print(json.dumps({**plain(result), "optimizer_steps": steps[0]}), file=file)
    seconds = time.perf_counter() - started
    algorithm.stop()
    ray.shutdown()
    print(f"seconds={seconds}")


if __name__ == "__main__":
    given = [setting.partition("=") for setting in sys.argv[2:]]
    main(sys.argv[1], **{name: json.loads(value) for name, _, value in given})
