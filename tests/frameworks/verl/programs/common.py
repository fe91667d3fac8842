"""What all programs share: settings of a small run, rows of known lengths, and a record of what verl logged."""

import json
import os
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from hydra import compose, initialize_config_module
from model import MODEL, TOKENIZER, VOCABULARY  # type: ignore[import-not-found]

if not hasattr(transformers, "AutoModelForVision2Seq"):  # its name before 5, which verl 0.6 and 0.7.0 import
    transformers.AutoModelForVision2Seq = transformers.AutoModelForImageTextToText

OUT = Path(os.environ["RUN_FOLDER"])
PROMPT, RESPONSE = 8, 16
PROMPTS, REPEATS = 4, 2


def model_folder() -> str:
    """A folder with the smallest model that has everything: configuration and tokenizer, no weights."""
    folder = OUT / "tiny-qwen2"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(MODEL))
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER))
    (folder / "tokenizer.json").write_text(json.dumps(VOCABULARY))
    return str(folder)


def overrides(*more: str) -> list[str]:
    """Settings of a run of three iterations on one GPU that is not there."""
    return [
        "trainer.logger=[console]",
        "trainer.total_training_steps=3",
        "trainer.total_epochs=10",
        "trainer.val_before_train=False",
        "trainer.test_freq=-1",
        "trainer.save_freq=2",
        f"trainer.default_local_dir={OUT}/checkpoints",
        "trainer.nnodes=1",
        "trainer.n_gpus_per_node=1",
        "algorithm.adv_estimator=grpo",
        "actor_rollout_ref.actor.use_kl_loss=True",
        f"actor_rollout_ref.model.path={model_folder()}",
        "data.train_files=/data/gsm8k/train.parquet",
        f"data.train_batch_size={PROMPTS}",
        f"data.max_prompt_length={PROMPT}",
        f"data.max_response_length={RESPONSE}",
        "data.dataloader_num_workers=0",
        f"actor_rollout_ref.rollout.n={REPEATS}",
        "actor_rollout_ref.rollout.name=vllm",
        "actor_rollout_ref.actor.ppo_mini_batch_size=2",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1",
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1",
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1",
        *more,
    ]


def v1_overrides() -> list[str]:
    """The same for V1, with the stand-ins of `v1` and two agent loop workers."""
    return overrides(
        "trainer.v1.trainer_mode=without_gpus",
        "trainer.resume_mode=disable",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
        "actor_rollout_ref.rollout.agent.default_agent_loop=made_up",
        "actor_rollout_ref.rollout.agent.num_workers=2",
        "ray_kwargs.ray_init.num_cpus=16",
        "data.val_batch_size=4",
    )


def configuration(*more: str) -> Any:
    """The configuration that verl makes of these settings."""
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", overrides=overrides(*more))


def lengths(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """How long the prompts and responses of a batch are."""
    return torch.randint(3, PROMPT + 1, (rows,)), torch.randint(2, RESPONSE + 1, (rows,))


def record_logs() -> None:
    """Write every log call down, as verl's own backends would get it."""
    from verl.utils.tracking import Tracking

    log = Tracking.log

    def recorded(self: Any, data: dict[str, Any], step: int, backend: Any = None) -> None:
        numbers = {key: float(value) for key, value in data.items() if hasattr(value, "__float__")}
        with (OUT / "logged.jsonl").open("a") as file:
            file.write(json.dumps({"step": step, "data": numbers}) + "\n")
        log(self, data, step, backend)

    Tracking.log = recorded


def spend(what: str, seconds: float) -> None:
    """Work of a known length, written down by a clock of its own."""
    began = time.perf_counter()
    time.sleep(seconds)
    with (OUT / "worked.jsonl").open("a") as file:
        file.write(json.dumps({"what": what, "seconds": time.perf_counter() - began}) + "\n")
