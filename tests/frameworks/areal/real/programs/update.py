"""What a training worker of AReaL is asked for in the third iteration, in a process that runs no loop."""

import os

import made_up  # type: ignore[import-not-found]
import torch
from areal.api.cli_args import PPOActorConfig

import rlotel

ROWS, LENGTH = 4, 6


def main() -> None:
    """Compute advantages and update a policy that has been updated twice."""
    config = PPOActorConfig(experiment_name="counting", trial_name="one", path="counting-0.1B", backend="fsdp:d2")
    actor = made_up.Actor(config)
    actor.set_version(2)
    shape = ROWS, LENGTH
    batch = {
        "input_ids": torch.arange(ROWS * LENGTH).reshape(shape) % made_up.PAD,
        "attention_mask": torch.ones(shape, dtype=torch.bool),
        "loss_mask": torch.tensor([[0, 0, 1, 1, 1, 1]] * ROWS),
        "logprobs": torch.full(shape, -3.0),
        "versions": torch.full(shape, 2),
        "rewards": torch.arange(ROWS).float(),
    }
    rows = [{key: value[row : row + 1] for key, value in batch.items()} for row in range(ROWS)]
    actor.ppo_update(actor.compute_advantages(rows))


if __name__ == "__main__":
    assert "RLOTEL_ATTEMPT" in os.environ, "a worker is one by what launched it"
    rlotel.instrument()
    main()
