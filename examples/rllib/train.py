"""CartPole with RLlib: PPO, which samples and learns in turn, or APPO, which does both at once. Runs on a CPU.

python examples/rllib/train.py [PPO|APPO]
"""

import sys

import ray
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.appo import APPOConfig
from ray.rllib.algorithms.ppo import PPOConfig

import rlotel

rlotel.instrument()  # before `ray.init`, by which the env runners are reached


def ppo() -> AlgorithmConfig:
    config = PPOConfig().environment("CartPole-v1")
    config.training(train_batch_size_per_learner=1000, minibatch_size=128, num_epochs=4)
    return config.evaluation(evaluation_interval=5, evaluation_duration=5)


def appo() -> AlgorithmConfig:
    config = APPOConfig().environment("CartPole-v1")
    config.training(train_batch_size_per_learner=200)
    return config.reporting(min_time_s_per_iteration=5)


def main(name: str) -> None:
    config = {"PPO": ppo, "APPO": appo}[name]()
    ray.init()
    algorithm = config.env_runners(num_env_runners=2, num_cpus_per_env_runner=0.5).build_algo()
    for _ in range(10):
        result = algorithm.train()
        print(result["training_iteration"], result["env_runners"].get("episode_return_mean"))
    print("saved to", algorithm.save_to_path())
    algorithm.stop()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "PPO")
