"""Workers in place of those that hold models on GPUs: they pass time, and say what a real one says."""

import json
import os
import pickle
import time
from pathlib import Path
from typing import Any

import deepspeed  # type: ignore[import-not-found]
import ray
import torch
from openrlhf.trainer.ray.launcher import BaseModelActor

OUT = Path(os.environ["RUN_FOLDER"])


def spend(what: str, seconds: float) -> None:
    """Work of a known length, written down by a clock of its own."""
    began = time.perf_counter()
    time.sleep(seconds)
    with (OUT / "worked.jsonl").open("a") as file:
        file.write(json.dumps({"what": what, "seconds": time.perf_counter() - began}) + "\n")


class Engine(deepspeed.DeepSpeedEngine):  # type: ignore[misc]
    """What reads a checkpoint."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)

    def __del__(self) -> None:
        pass

    def load_checkpoint(self, folder: str, *args: Any, **settings: Any) -> Any:
        spend("load", 0.05)
        return folder, pickle.loads((Path(folder) / "state.pickle").read_bytes())


class Worker(BaseModelActor):  # type: ignore[misc]
    """What all of them can be asked for."""

    def init_model_from_pretrained(self, strategy: Any, *args: Any, **settings: Any) -> None:
        self.strategy = strategy
        self.states: dict[str, Any] = {}
        folder = Path(strategy.args.ckpt.path) / "_actor"
        if type(self).__name__ == "PolicyModelActor" and strategy.args.ckpt.load_enable and folder.exists():
            _, self.states = strategy.load_ckpt(Engine(), str(folder))

    def append(self, experience: Any) -> None:
        spend("append", 0.002)

    def empty_cache(self) -> None:
        pass

    reload_states = offload_states = save_model = empty_cache


@ray.remote(num_gpus=1)
class PolicyModelActor(Worker):
    steps = 0

    def forward(self, action_mask: Any, **inputs: Any) -> Any:
        spend("logprob", 0.02)
        return torch.full(action_mask.shape, -1.0)

    def fit(self, kl_ctl: float = 0) -> dict[str, float]:
        self.steps += 1
        spend("train", 0.05)
        if self.steps == int(os.environ.get("FAIL_AT", "0")):
            raise FloatingPointError("the optimizer's step overflowed")
        return {
            "policy_loss": 0.1 / self.steps,
            "actor_lr": 1e-6 * self.steps,
            "actor_grad_norm": 0.4 + self.steps,
            "kl": 0.01 * self.steps,
            "ppo_kl": 0.001 * self.steps,
            "vllm_kl": 0.002 * self.steps,
            "entropy_loss": 2.0 - 0.1 * self.steps,
            "ppo_clip_ratio": 0.05,
            "reward": 0.5,
            "return": 0.4,
            "response_length": 4.0,
            "total_length": 8.0,
        }

    def broadcast_to_vllm(self) -> None:
        spend("sync", 0.03)

    def get_checkpoint_states(self) -> dict[str, Any]:
        return self.states

    def save_checkpoint(self, tag: str, client_states: Any = None, **settings: Any) -> None:
        spend("save", 0.04)
        folder = Path(self.strategy.args.ckpt.path) / "_actor"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state.pickle").write_bytes(pickle.dumps(client_states))


@ray.remote(num_gpus=1)
class CriticModelActor(Worker):
    def forward(self, action_mask: Any, **inputs: Any) -> Any:
        spend("value", 0.01)
        return torch.zeros(action_mask.shape)

    def fit(self) -> dict[str, float]:
        spend("train critic", 0.02)
        return {"critic_loss": 0.3, "values": 0.1, "critic_lr": 1e-5, "critic_grad_norm": 0.7}

    def save_checkpoint(self, tag: str, **settings: Any) -> None:
        pass


@ray.remote(num_gpus=1)
class ReferenceModelActor(Worker):
    def forward(self, action_mask: Any, **inputs: Any) -> Any:
        spend("ref_logprob", 0.02)
        return torch.full(action_mask.shape, -1.1)


@ray.remote(num_gpus=1)
class RewardModelActor(Worker):
    def forward(self, sequences: Any, **inputs: Any) -> Any:
        spend("reward model", 0.015)
        return torch.rand(len(sequences))
