"""GRPO with AReaL on sums of two numbers. Needs two GPUs; what AReaL asks for is in its `cuda` extra.

pip install 'rlotel' 'areal[cuda]'
python examples/areal/train.py --config examples/areal/grpo.yaml
"""

import random
import re
import sys

from areal import PPOTrainer
from areal.api.cli_args import GRPOConfig, load_expr_config
from datasets import Dataset

import rlotel

ROWS = 4096


def reward(_prompt: str, completion: str, *_tokens: object, answer: int, **_row: object) -> float:
    """Whether the last number is the sum; AReaL calls it in processes that its rollout workers start."""
    numbers = re.findall(r"\d+", completion)
    return float(bool(numbers) and int(numbers[-1]) == answer)


def sums() -> Dataset:
    """Questions, as a chat with one message."""
    numbers = random.Random(1)  # noqa: S311 - no secrets
    pairs = [(numbers.randint(10, 99), numbers.randint(10, 99)) for _ in range(ROWS)]
    return Dataset.from_list(
        [
            {"messages": [{"role": "user", "content": f"What is {one} + {other}?"}], "answer": one + other}
            for one, other in pairs
        ]
    )


def main() -> None:
    rlotel.instrument()
    config, _ = load_expr_config(sys.argv[1:], GRPOConfig)
    with PPOTrainer(config, train_dataset=sums()) as trainer:
        trainer.train(
            workflow="areal.workflow.rlvr.RLVRWorkflow",
            workflow_kwargs={
                "reward_fn": "train.reward",  # workers import it: this folder is on their path
                "gconfig": config.gconfig,
                "tokenizer": config.tokenizer_path,
            },
        )


if __name__ == "__main__":
    main()
