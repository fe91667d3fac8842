"""PPO, or DQN, with Stable-Baselines3 on CartPole, evaluated and saved meanwhile.

pip install rlotel stable-baselines3
python examples/stable_baselines3/train.py           # PPO on a CPU, some 20 seconds
python examples/stable_baselines3/train.py dqn
"""

import sys
import tempfile

from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env

import rlotel

rlotel.instrument()


def main(algorithm: str = "ppo") -> None:
    environments = make_vec_env("CartPole-v1", n_envs=8)
    if algorithm == "dqn":
        model = DQN("MlpPolicy", environments, learning_starts=1000, train_freq=4, gradient_steps=4, device="cpu")
    else:
        model = PPO("MlpPolicy", environments, n_steps=512, batch_size=256, device="cpu")
    folder = tempfile.mkdtemp()
    callbacks = [
        EvalCallback(make_vec_env("CartPole-v1"), eval_freq=1000, best_model_save_path=folder),
        CheckpointCallback(save_freq=2000, save_path=folder),
    ]
    model.learn(40_000, callback=callbacks)
    print(f"models are in {folder}")


if __name__ == "__main__":
    main(*sys.argv[1:])
