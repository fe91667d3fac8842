"""Train a toy policy with a real algorithm of Stable-Baselines3, and note what it logs.

Usage: python train.py [ITERATIONS], with settings in the environment:

KIND        ppo, a2c, dqn or sac; own: an algorithm of the user's own; twice: PPO, and then PPO again
PROCESSES   whether the environments run in processes of their own
EVALUATE    whether to evaluate while training, and once afterwards
SAVE, LOAD  a checkpoint to write at the end, and one to go on from
FAIL        what raises in the second iteration: step or train
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
import torch.utils.tensorboard  # slow to load on a busy machine, and an identity is not waited for that long

import rlotel

rlotel.instrument(gpu=False)

import stable_baselines3 as sb3  # noqa: E402 - what is imported later is watched as well
from stable_baselines3.common import callbacks, evaluation, logger  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.monitor import Monitor  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize  # noqa: E402

FOLDER = Path(os.environ["RUN_FOLDER"])
KIND = os.environ.get("KIND", "ppo")
FAIL = os.environ.get("FAIL", "")
ENVS, STEPS, EPOCHS, BATCH = 2, 32, 3, 16
SLOW = 0.002
"""Seconds of a step of one environment, so that a rollout takes what is worth an iteration."""


class Broken(Exception):
    """What the test lets go wrong."""


def note(file: str, **values: Any) -> None:
    with (FOLDER / file).open("a") as lines:
        lines.write(json.dumps(values) + "\n")


class Point(gymnasium.Env):  # type: ignore[misc]
    """A point on a line that is to be kept near its middle; an episode ends far from it, or after 20 steps."""

    observation_space = gymnasium.spaces.Box(-10, 10, (2,), np.float32)
    steps = 0

    def __init__(self, *, continuous: bool, seconds: float, what: str = "step") -> None:
        self.action_space = (
            gymnasium.spaces.Box(-1, 1, (1,), np.float32) if continuous else gymnasium.spaces.Discrete(3)
        )
        self.continuous, self.seconds, self.what = continuous, seconds, what

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = 20
        self.x = self.np_random.normal(size=2).astype(np.float32)
        return self.x.copy(), {}

    def step(self, action: Any) -> Any:
        began = time.perf_counter()
        if self.seconds:
            time.sleep(self.seconds)
        Point.steps += 1
        if FAIL == "step" and Point.steps == ENVS * STEPS + 5:
            raise Broken("a secret")
        self.x[1] += 0.1 * (float(action[0]) if self.continuous else float(action) - 1)
        self.x[0] += 0.1 * self.x[1]
        self.left -= 1
        far, late = bool(abs(self.x[0]) > 3), self.left == 0
        if self.seconds:
            note("worked.jsonl", what=self.what, seconds=time.perf_counter() - began)
        if far or late:
            note("ended.jsonl", what=self.what)
        return self.x.copy(), -abs(float(self.x[0])), far, late, {}


gymnasium.register("Point-v0", lambda **keywords: Point(**keywords))


class Notes(logger.KVWriter):  # type: ignore[misc]
    """Writes down what is logged."""

    def write(self, key_values: dict[str, Any], key_excluded: Any, step: int = 0) -> None:
        note("logged.jsonl", **{key: float(value) for key, value in key_values.items()})


class OwnPPO(sb3.PPO):  # type: ignore[misc]
    """An algorithm of the user's own."""

    def learn(self, *args: Any, **kwargs: Any) -> Any:
        return super().learn(*args, **kwargs)

    def train(self) -> None:
        super().train()
        time.sleep(0.02)


def clocked(model: Any, name: str) -> None:
    """Note how long each call takes, from outside of what is watched."""
    function = getattr(model, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        result = function(*args, **kwargs)
        note("worked.jsonl", what=name, seconds=time.perf_counter() - began, kwargs=[*kwargs])
        return result

    setattr(model, name, call)


def environments(slow: float) -> Any:
    vector = SubprocVecEnv if os.environ.get("PROCESSES") else None
    keywords = {"continuous": KIND == "sac", "seconds": slow}
    return make_vec_env("Point-v0", ENVS, seed=0, env_kwargs=keywords, vec_env_cls=vector)


def made() -> tuple[Any, int]:
    """The model, and the steps of all its environments in an iteration."""
    common: dict[str, Any] = {
        "seed": 0,
        "device": os.environ.get("DEVICE", "cpu"),
        "policy_kwargs": {"net_arch": [8]},
    }
    if KIND == "a2c":
        return sb3.A2C("MlpPolicy", environments(0), **common), 5 * ENVS
    if KIND in ("dqn", "sac"):
        kind = sb3.DQN if KIND == "dqn" else sb3.SAC
        common.update(learning_starts=50, train_freq=4, gradient_steps=2, batch_size=BATCH, buffer_size=5000)
        return kind("MlpPolicy", environments(0), **common), 4 * ENVS
    kind = OwnPPO if KIND == "own" else sb3.PPO
    common.update(n_steps=STEPS, n_epochs=EPOCHS, batch_size=BATCH)
    return kind("MlpPolicy", VecNormalize(environments(SLOW)), **common), STEPS * ENVS


def fail_in_the_second(model: Any) -> None:
    """In the third optimizer step of the second iteration."""
    taken: list[int] = []

    def count(*_: Any) -> None:
        taken.append(1)
        if len(taken) == EPOCHS * STEPS * ENVS // BATCH + 3:
            raise Broken("a secret")

    model.policy.optimizer.register_step_pre_hook(count)


def main() -> None:
    torch.set_num_threads(1)
    iterations = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ITERATIONS", "4"))
    model, steps = made()
    if load := os.environ.get("LOAD"):
        model = type(model).load(load, env=model.env)
    model.set_logger(logger.Logger(str(FOLDER), [Notes()]))
    clocked(model, "collect_rollouts")
    clocked(model, "train")
    if FAIL == "train":
        fail_in_the_second(model)
    callback = None
    if os.environ.get("EVALUATE"):
        alone = gymnasium.make("Point-v0", continuous=False, seconds=0.001, what="evaluation")
        scored = VecNormalize(DummyVecEnv([lambda: Monitor(alone)]))
        callback = callbacks.EvalCallback(
            scored, eval_freq=STEPS + 8, n_eval_episodes=2, best_model_save_path=str(FOLDER / "best")
        )
    began = time.perf_counter()
    try:
        model.learn(iterations * steps, callback=callback, log_interval=1 if KIND == "ppo" else 50)
        if KIND == "twice":
            model.learn(iterations * steps)
    except Broken as broken:
        print(f"raised {type(broken).__name__}: {broken}")
    elapsed = time.perf_counter() - began
    recorded = {key: float(value) for key, value in model.logger.name_to_value.items()}
    finished = [info for info in model.ep_info_buffer if info]
    (FOLDER / "last.json").write_text(
        json.dumps(
            {
                "recorded": recorded,
                "returns": [float(info["r"]) for info in finished],
                "lengths": [float(info["l"]) for info in finished],
                "steps": model.num_timesteps,
                "updates": model._n_updates,
                "episodes": model._episode_num,
            }
        )
    )
    if os.environ.get("EVALUATE"):
        note("scores.jsonl", scores=[float(score) for score in evaluation.evaluate_policy(model, scored)])
    if save := os.environ.get("SAVE"):
        for name in ("collect_rollouts", "train"):
            delattr(model, name)  # these are of this process
        model.save(save)
        if KIND in ("dqn", "sac"):
            model.save_replay_buffer(f"{save}-buffer")
    weights = b"".join(weight.detach().numpy().tobytes() for weight in model.policy.parameters())
    print(f"weights={hashlib.sha256(weights).hexdigest()}")
    print(f"seconds={elapsed}")


if __name__ == "__main__":
    main()
