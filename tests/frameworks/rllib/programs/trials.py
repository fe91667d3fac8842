"""Runs two trials of PPO with Tune, each in an actor of its own, as a user does.

Usage: python trials.py
"""

import os
from pathlib import Path

import ray
from ray import tune
from ray.rllib.algorithms.ppo import PPOConfig

import rlotel

rlotel.instrument()
config = (
    PPOConfig()
    .environment("CartPole-v1")
    .env_runners(num_env_runners=0)
    .resources(num_cpus_for_main_process=0.5)  # so that both run at once on one
    .training(
        train_batch_size_per_learner=100,
        minibatch_size=50,
        num_epochs=1,
        lr=tune.grid_search([0.001, 0.002]),
    )
)
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
results = tune.Tuner(
    "PPO",
    param_space=config,
    run_config=tune.RunConfig(
        stop={"training_iteration": 2},
        storage_path=str(Path(os.environ["RUN_FOLDER"], "results")),
        checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=True),
        verbose=0,
    ),
).fit()
print("trials", sorted(result.metrics["trial_id"] for result in results))
ray.shutdown()
