"""PPO with rsl_rl's runner on a toy of 256 environments in one tensor, as simulators on GPUs are.

pip install rlotel rsl-rl-lib
python examples/rsl_rl/train.py                      # on a CPU, some 10 seconds
"""

import sys
import tempfile
from typing import Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

import rlotel

rlotel.instrument()

SETTINGS: dict[str, Any] = {
    "num_steps_per_env": 24,
    "save_interval": 10,
    "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
    "actor": {
        "class_name": "MLPModel",
        "hidden_dims": [64, 64],
        "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0},
    },
    "critic": {"class_name": "MLPModel", "hidden_dims": [64, 64]},
    "algorithm": {"class_name": "PPO", "num_learning_epochs": 5, "num_mini_batches": 4, "schedule": "adaptive"},
}


class Carts(VecEnv):  # type: ignore[misc]
    """Carts that are to be pushed to the middle of their track, and kept there."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs, self.num_actions, self.max_episode_length = num_envs, 1, 100
        self.device = "cpu"
        self.cfg: dict[str, Any] = {}
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.position, self.speed = torch.randn(num_envs), torch.zeros(num_envs)

    def get_observations(self) -> TensorDict:
        return TensorDict({"policy": torch.stack([self.position, self.speed], 1)}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        self.speed += 0.1 * actions[:, 0].clamp(-1, 1)
        self.position += 0.1 * self.speed
        self.episode_length_buf += 1
        rewards = 1 - self.position.abs()
        late = self.episode_length_buf >= self.max_episode_length
        done = late | (self.position.abs() > 4)
        self.position[done], self.speed[done] = torch.randn(int(done.sum())), 0.0
        self.episode_length_buf[done] = 0
        return self.get_observations(), rewards, done.long(), {"time_outs": late}


def main(iterations: str = "40") -> None:
    runner = OnPolicyRunner(Carts(256), SETTINGS, log_dir=tempfile.mkdtemp(), device="cpu")
    runner.learn(int(iterations), init_at_random_ep_len=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
