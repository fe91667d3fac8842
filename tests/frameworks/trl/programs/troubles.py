"""Trainings that break off, and what is done about it: four of them, one after the other.

1. GRPO, two iterations on each batch of rollouts: a reward fails in the fifth iteration.
2. The same, resumed from the checkpoint of the fourth: fifth and sixth.
3. RLOO anew, so its iterations are counted on: the seventh, and the optimizer fails in the eighth.
4. GRPO anew, with a reward that never says anything: the eighth.
"""

from typing import Any

import tiny  # type: ignore[import-not-found]
import torch
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

import rlotel


class RewardBroken(RuntimeError):
    """What a reward raises."""


class StepBroken(RuntimeError):
    """What an optimizer raises."""


class Breaking:
    """Fails when it is called for a certain time."""

    def __init__(self, error: Exception, time: int) -> None:
        self.error = error
        self.left = time

    def __call__(self) -> None:
        self.left -= 1
        if not self.left:
            raise self.error


class BreakingSGD(torch.optim.SGD):  # type: ignore[misc]  # torch is not installed where this is checked
    """Fails at its second step."""

    breaks = Breaking(StepBroken("step"), 2)

    def step(self, closure: Any = None) -> Any:
        self.breaks()
        return super().step(closure)


def silent(completions: list[str], **_: Any) -> list[None]:
    """Knows of nothing."""
    return [None] * len(completions)


broken = RewardBroken("reward")
breaks = Breaking(broken, 3)


def breaking(completions: list[str], **_: Any) -> list[float]:
    """Fails at its third batch."""
    breaks()
    return [float(len(completion)) for completion in completions]


def grpo(reward: Any, folder: str, **settings: Any) -> GRPOTrainer:
    return GRPOTrainer(
        model=tiny.model(words),
        reward_funcs=[reward],
        args=GRPOConfig(**tiny.rollouts(folder, **settings)),
        train_dataset=tiny.prompts(),
        processing_class=words,
        callbacks=[tiny.Record()],
    )


def fails(trainer: Any, error: Exception) -> None:
    """Train, which must fail with that very exception."""
    try:
        trainer.train()
    except RuntimeError as caught:
        if caught is error:
            return
        raise
    raise AssertionError("nothing failed")


rlotel.instrument()
words = tiny.tokenizer()
twice = {"num_iterations": 2, "max_steps": 6, "save_strategy": "steps", "save_steps": 2}
fails(grpo(breaking, "checkpoints", **twice), broken)
grpo(breaking, "checkpoints", **twice).train(resume_from_checkpoint=True)
model = tiny.model(words)
rloo = RLOOTrainer(
    model=model,
    reward_funcs=[tiny.digits],
    args=RLOOConfig(**tiny.rollouts("others", max_steps=2)),
    train_dataset=tiny.prompts(),
    processing_class=words,
    optimizers=(BreakingSGD(model.parameters(), lr=0.1), None),
    callbacks=[tiny.Record()],
)
fails(rloo, BreakingSGD.breaks.error)
grpo(silent, "others", max_steps=1).train()
