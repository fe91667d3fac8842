"""AsyncGRPO, whose rollouts come from a thread here in place of a vLLM server: three iterations."""

import queue
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import tiny  # type: ignore[import-not-found]
import torch
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer, packing
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

import rlotel

# The attention of packed rows is a kernel for GPUs; what it computes makes no difference here.
packing._flash_attn = lambda: SimpleNamespace(flash_attn_varlen_func=lambda query, *_, **__: query)
torch.cuda.get_device_name = lambda *_: "NVIDIA H100 80GB HBM3"  # AsyncGRPO needs one to tell its MFU
PROMPT, COMPLETION = [4, 5, 6], [7, 8, 9, 1]
STALE = 1
"""Versions that the policy is ahead of the one that made a rollout, from the second on."""


class Worker:
    """Makes up rollouts."""

    def __init__(self) -> None:
        self.rollout_buffer: queue.Queue[RolloutSample] = queue.Queue(maxsize=8)
        self.metrics_queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self.version = 0
        self.stopped = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self.make, daemon=True).start()

    def stop(self) -> None:
        self.stopped.set()

    def update_model_version(self, version: int) -> None:
        self.version = version

    def check_health(self, stale_after_s: float) -> None:
        pass

    def make(self) -> None:
        number = 0
        while not self.stopped.wait(0.005):
            rollout = RolloutSample(
                prompt=[],
                completion=[],
                input_ids=np.array(PROMPT + COMPLETION),
                completion_mask=np.array([0] * len(PROMPT) + [1] * len(COMPLETION)),
                old_log_probs=np.array([0.0] * len(PROMPT) + [-1.0] * len(COMPLETION), dtype=np.float32),
                advantage=1.0 if number % 2 else -1.0,
                model_version=max(0, self.version - STALE),
                group_id=number // 4,
                metrics={"reward": float(number % 2), "reward_std": 0.5},
                enqueued_at=time.time(),
            )
            number += 1
            self.metrics_queue.put({"completions/mean_length": (len(COMPLETION), 1), "rollout/turns_mean": (2, 1)})
            while not self.stopped.is_set():
                try:
                    self.rollout_buffer.put(rollout, timeout=0.1)
                    break
                except queue.Full:
                    continue


class Transfer:
    """Takes the weights, as a server would."""

    def init_weight_transfer(self) -> None: ...

    def pause(self) -> None: ...

    def send_weights(self, iterator: Any) -> None:
        with tiny.working("sync"):
            for _ in iterator:
                time.sleep(0.001)

    def resume(self) -> None: ...

    def destroy(self) -> None: ...


rlotel.instrument()
words = tiny.tokenizer()
trainer = AsyncGRPOTrainer(
    model=tiny.model(words).config._name_or_path,
    reward_funcs=[tiny.exact],
    args=AsyncGRPOConfig(
        **tiny.settings(
            "checkpoints",
            max_steps=3,
            token_budget=0,
            num_generations=4,
            bf16=True,
            weight_sync_steps=1,
            save_strategy="steps",
            save_steps=2,
        )
    ),
    train_dataset=tiny.prompts(),
    processing_class=words,
    callbacks=[tiny.Record()],
    rollout_worker=Worker(),
    weight_transfer=Transfer(),
)
trainer.train()
