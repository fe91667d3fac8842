"""A whole run, as users write them: GRPO or RLOO with two rewards, a reference model, evaluations and checkpoints.

Usage: train.py grpo|rloo [SETTING=VALUE...]. ITERATIONS says how many. The last line is `seconds=`.
"""

import ast
import os
import sys
import time
from typing import Any

import tiny  # type: ignore[import-not-found]
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

import rlotel


def main(kind: str, *settings: str) -> None:
    """Train."""
    rlotel.instrument()
    tiny.record_timers()
    words = tiny.tokenizer()
    given: dict[str, Any] = {
        "max_steps": int(os.environ.get("ITERATIONS", "4")),
        "beta": 0.02,
        "eval_strategy": "steps",
        "eval_steps": 2,
        "per_device_eval_batch_size": tiny.ROWS,
        "save_strategy": "steps",
        "save_steps": 2,
        "save_only_model": False,
        **{name: ast.literal_eval(value) for name, _, value in (setting.partition("=") for setting in settings)},
    }
    config, trainer = {"grpo": (GRPOConfig, GRPOTrainer), "rloo": (RLOOConfig, RLOOTrainer)}[kind]
    running = trainer(
        model=tiny.model(words),
        reward_funcs=[tiny.exact, tiny.digits],
        args=config(**tiny.rollouts("checkpoints", **given)),
        train_dataset=tiny.prompts(),
        eval_dataset=tiny.prompts(8, "held-out"),
        processing_class=words,
        callbacks=[tiny.Record()],
    )
    began = time.perf_counter()
    running.train()
    print(f"seconds={time.perf_counter() - began:.3f}")


main(*sys.argv[1:])
