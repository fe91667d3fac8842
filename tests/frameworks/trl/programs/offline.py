"""Trainers that make no rollouts: SFT, DPO, KTO and a reward model, two iterations each, one after the other."""

from typing import Any

import tiny  # type: ignore[import-not-found]
from datasets import Dataset
from transformers import Qwen2ForSequenceClassification
from trl import (
    DPOConfig,
    DPOTrainer,
    KTOConfig,
    KTOTrainer,
    RewardConfig,
    RewardTrainer,
    SFTConfig,
    SFTTrainer,
)

import rlotel

PAIRS = [{"prompt": f"{a}+1=", "chosen": str(a + 1), "rejected": str(a)} for a in range(8)] * 8
JUDGED = [{"prompt": f"{a}+1=", "completion": str(a + a % 2), "label": bool(a % 2)} for a in range(8)] * 8
TEXTS = [{"text": f"{a}+1={a + 1}"} for a in range(8)] * 8


def train(trainer: Any, config: Any, model: Any, rows: list[dict[str, Any]], **settings: Any) -> None:
    trainer(
        model=model,
        args=config(**tiny.settings(trainer.__name__, max_steps=2, bf16=False, **settings)),
        train_dataset=Dataset.from_list(rows),
        processing_class=words,
        callbacks=[tiny.Record()],
    ).train()


rlotel.instrument()
words = tiny.tokenizer()
train(SFTTrainer, SFTConfig, tiny.model(words), TEXTS, max_length=16)
train(DPOTrainer, DPOConfig, tiny.model(words), PAIRS)
train(KTOTrainer, KTOConfig, tiny.model(words), JUDGED)
judge = Qwen2ForSequenceClassification(tiny.model(words, num_labels=1).config)
train(RewardTrainer, RewardConfig, judge, PAIRS)
