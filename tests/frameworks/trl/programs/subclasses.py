"""What is not TRL's, and what others make of it: two iterations of a user's own trainer, and then all let go.

Before them there is a trainer of transformers itself, and an evaluation on two data sets without a training. The
reward comes from a model that another trainer evaluates meanwhile.
"""

from typing import Any

import tiny  # type: ignore[import-not-found]
from datasets import Dataset
from transformers import Trainer, TrainingArguments
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

import rlotel
from rlotel import opened

METHODS = ("_generate", "_generate_and_score_completions", "_calculate_rewards", "compute_loss", "log")


class Own(GRPOTrainer):  # type: ignore[misc]  # TRL is not installed where this is checked
    """Makes its rollouts twice, and gives them a reward of its own."""

    def _generate(self, prompts: list[Any]) -> Any:
        super()._generate(prompts)
        return super()._generate(prompts)

    def _calculate_rewards(self, *arguments: Any) -> Any:
        judge.evaluate()
        return super()._calculate_rewards(*arguments)


def methods() -> list[Any]:
    return [vars(kind).get(name) for kind in (Own, GRPOTrainer, Trainer) for name in METHODS]


rlotel.instrument()
words = tiny.tokenizer()
texts = Dataset.from_list([{"text": "1+1=2"}] * 8)
ids = Dataset.from_list([{"input_ids": [4, 5], "labels": [4, 5]}] * 8)
plain = Trainer(
    model=tiny.model(words), args=TrainingArguments(**tiny.settings("plain", max_steps=2)), train_dataset=ids
)
plain.train()
judge = SFTTrainer(
    model=tiny.model(words),
    args=SFTConfig(**tiny.settings("judge", bf16=False, max_length=16)),
    train_dataset=texts,
    eval_dataset=texts,
    processing_class=words,
)
rlotel.uninstrument()
before = methods()
opened.IDENTITY_WAIT = 0.1  # so that it is over before the trainer is made
rlotel.instrument()
own = Own(
    model=tiny.model(words),
    reward_funcs=[tiny.digits],
    args=GRPOConfig(**tiny.rollouts("own", max_steps=2, per_device_eval_batch_size=tiny.ROWS)),
    train_dataset=tiny.prompts(),
    eval_dataset={"easy": tiny.prompts(8, "easy"), "hard": tiny.prompts(8, "hard")},
    processing_class=words,
    callbacks=[tiny.Record()],
)
own.evaluate()
own.train()
rlotel.uninstrument()
assert all(now is then for now, then in zip(methods(), before, strict=True))
