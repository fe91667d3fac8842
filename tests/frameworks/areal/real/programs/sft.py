"""AReaL's real SFTTrainer on a CPU, as the only rank of a program; its engine is made up, see `made_up.py`."""

import os
from pathlib import Path
from typing import Any

import made_up  # type: ignore[import-not-found]
import torch
import torch.distributed as dist
from areal.api.cli_args import (
    EvaluatorConfig,
    RecoverConfig,
    SaverConfig,
    SFTConfig,
    StatsLoggerConfig,
    TrainDatasetConfig,
    TrainEngineConfig,
    ValidDatasetConfig,
)
from areal.trainer.sft.lm_engine import LMEngine
from areal.trainer.sft_trainer import SFTTrainer
from ppo import NAMES, Logged  # type: ignore[import-not-found]

import rlotel

ROWS = 4
Batch = list[dict[str, Any]]


class Supervised(made_up.Engine, LMEngine):  # type: ignore[misc]
    """AReaL's own loss of supervised training on a model of two layers."""

    def __init__(self) -> None:
        made_up.Engine.__init__(self, made_up.WORDS)
        LMEngine.__init__(self, self)

    def train_batch(self, input_: dict[str, Any], loss_fn: Any, loss_weight_fn: Any) -> dict[str, float]:
        done: dict[str, float] = super().train_batch(packed(input_), loss_fn, loss_weight_fn)
        return done

    def eval_batch(self, input_: dict[str, Any], loss_fn: Any, loss_weight_fn: Any) -> None:
        rows = packed(input_)
        loss_fn(*self.log_probabilities(rows), rows)


def packed(rows: dict[str, Any]) -> dict[str, Any]:
    """Rows end to end, as AReaL's engines have them."""
    count, length = rows["input_ids"].shape
    flat = {key: rows[key].reshape(-1) for key in ("input_ids", "loss_mask")}
    return {**flat, "cu_seqlens": torch.arange(0, count * length + 1, length)}


class Trainer(SFTTrainer):  # type: ignore[misc]
    """The engine is made up, and made here."""

    def _create_actor(self, actor_config: TrainEngineConfig) -> Supervised:
        return Supervised()

    def _load_bcast_from(self, data_generator: Any) -> Batch:
        batch: Batch = next(data_generator)
        return batch


def main() -> None:
    """Train for three steps, with one evaluation."""
    folder = Path(os.environ["RUN_FOLDER"])
    words = made_up.tokenizer(folder / "counting-0.1B")
    config = SFTConfig(
        experiment_name="counting",
        trial_name="one",
        total_train_steps=3,
        tokenizer_path=words,
        train_dataset=TrainDatasetConfig(path="/data/gsm8k", type="sft", batch_size=ROWS, num_workers=0),
        valid_dataset=ValidDatasetConfig(path="/data/gsm8k", type="sft", batch_size=ROWS, num_workers=0),
        saver=SaverConfig(**NAMES),
        recover=RecoverConfig(**NAMES),
        evaluator=EvaluatorConfig(**NAMES, freq_steps=2),
        stats_logger=StatsLoggerConfig(**NAMES),
        actor=TrainEngineConfig(experiment_name="counting", trial_name="one", path=words, backend="fsdp:d1"),
    )
    config.cluster.fileroot = NAMES["fileroot"]
    rows = [
        {"input_ids": [number % 8, 1, 2, 3, 4, made_up.EOS], "loss_mask": [0, 0, 1, 1, 1, 1]}
        for number in range(4 * ROWS)
    ]
    with Trainer(config, train_dataset=rows, valid_dataset=rows[:ROWS]) as trainer:
        trainer.stats_logger.__class__ = Logged
        trainer.train()


if __name__ == "__main__":
    rlotel.instrument()
    dist.init_process_group("gloo", init_method=f"file://{os.environ['RUN_FOLDER']}/ranks", rank=0, world_size=1)
    main()
