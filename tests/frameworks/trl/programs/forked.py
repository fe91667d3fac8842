"""GRPO on two ranks that are forked from a program, as a notebook does it: two iterations."""

import tiny  # type: ignore[import-not-found]
import torch
from accelerate import debug_launcher
from trl import GRPOConfig, GRPOTrainer

import rlotel


def main() -> None:
    """Train, on each rank."""
    tiny.RANK = torch.distributed.get_rank()
    words = tiny.tokenizer()
    GRPOTrainer(
        model=tiny.model(words),
        reward_funcs=[tiny.digits],
        args=GRPOConfig(**tiny.rollouts("checkpoints", max_steps=2)),
        train_dataset=tiny.prompts(),
        processing_class=words,
        callbacks=[tiny.Record()],
    ).train()


rlotel.instrument()
debug_launcher(main, num_processes=2)
