"""GRPO without a word of rlotel: two iterations."""

import tiny  # type: ignore[import-not-found]
from trl import GRPOConfig, GRPOTrainer

words = tiny.tokenizer()
GRPOTrainer(
    model=tiny.model(words),
    reward_funcs=[tiny.digits],
    args=GRPOConfig(**tiny.rollouts("checkpoints", max_steps=2)),
    train_dataset=tiny.prompts(),
    processing_class=words,
).train()
