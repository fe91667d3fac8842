"""`RayPPOTrainer.fit` of verl 0.7 to 0.9, with workers that only pass time. Takes one override an argument."""

import contextlib
import sys
from typing import Any, ClassVar

import common  # type: ignore[import-not-found]
import numpy as np
import torch
from common import PROMPT, RESPONSE, spend
from tensordict import TensorDict

import rlotel

with contextlib.suppress(ImportError):
    # Without flash-attn, 0.8 takes its GPU for one that has it. The functions for other devices do the same.
    import verl.utils.attention_utils as attention
    from verl.utils.npu_flash_attn_utils import index_first_axis, pad_input, rearrange, unpad_input

    attention._get_attention_functions = lambda: (index_first_axis, pad_input, rearrange, unpad_input)


class Prompts(torch.utils.data.Dataset[Any]):  # type: ignore[misc]
    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {
            "dummy_tensor": torch.tensor([0], dtype=torch.uint8),
            "raw_prompt": [{"role": "user", "content": f"question {index}"}],
            "data_source": "made-up",
            "reward_model": {"ground_truth": "1"},
            "index": index,
            "extra_info": {},
        }


class AgentLoops:
    """In place of the workers that make rollouts."""

    def generate_sequences(self, prompts: Any) -> Any:
        from verl import DataProto

        spend("generate", 0.05)
        rows = len(prompts)
        prompt_lengths, response_lengths = common.lengths(rows)
        asked, answered = torch.randint(5, 100, (rows, PROMPT)), torch.randint(5, 100, (rows, RESPONSE))
        asked_mask = (torch.arange(PROMPT)[None] >= (PROMPT - prompt_lengths)[:, None]).long()
        answered_mask = (torch.arange(RESPONSE)[None] < response_lengths[:, None]).long()
        mask = torch.cat([asked_mask, answered_mask], 1)
        scores = torch.zeros(rows, RESPONSE)
        scores[torch.arange(rows), response_lengths - 1] = torch.randint(0, 2, (rows,)).float()
        tensors = {
            "prompts": asked,
            "responses": answered,
            "response_mask": answered_mask,
            "input_ids": torch.cat([asked, answered], 1),
            "attention_mask": mask,
            "position_ids": (mask.cumsum(1) - 1).clamp(min=0),
            "rm_scores": scores,
            "rollout_log_probs": -torch.rand(rows, RESPONSE) * answered_mask,
        }
        others = {
            "__num_turns__": np.full(rows, 2, np.int32),
            "acc": np.ones(rows),
            "multi_modal_inputs": np.array([{} for _ in range(rows)], dtype=object),
        }
        timing = {
            "agent_loop/generate_sequences/min": 0.01,
            "agent_loop/generate_sequences/max": 0.05,
            "agent_loop/compute_score/mean": 0.003,
            "agent_loop/num_preempted/mean": -1,
        }
        return DataProto(
            batch=TensorDict(tensors, batch_size=rows),
            non_tensor_batch=others,
            meta_info={"timing": timing, "reward_extra_keys": ["acc"]},
        )


class Later:
    def __init__(self, value: Any) -> None:
        self._value = value

    def get(self) -> Any:
        return self._value


class Workers:
    """In place of the worker groups of actor, reference and critic."""

    world_size = 1
    _dispatch_info: ClassVar[dict[str, Any]] = {}

    def _query_dispatch_info(self, role: str) -> list[int]:
        return [0]

    def _answer(self, tensors: dict[str, Any], metrics: dict[str, Any]) -> Any:
        from verl.utils import tensordict_utils

        return tensordict_utils.get_tensordict(tensors, non_tensor_dict={"metrics": metrics})

    def _nested(self, rows: Any) -> torch.Tensor:
        ids = rows["input_ids"]
        return torch.nested.nested_tensor_from_jagged(-torch.rand(ids.values().shape[0]), offsets=ids.offsets())

    def compute_log_prob(self, rows: Any) -> Any:
        spend("log_prob", 0.01)
        return self._answer({"log_probs": self._nested(rows), "entropy": self._nested(rows)}, {"mfu": 0.21})

    compute_ref_log_prob = compute_log_prob

    def infer_batch(self, rows: Any) -> Later:
        return Later(self._answer({"values": self._nested(rows)}, {"mfu": 0.2}))

    def update_actor(self, rows: Any) -> Any:
        spend("update_actor", 0.02)
        return self._answer({}, metrics())

    def train_mini_batch(self, rows: Any) -> Later:
        spend("update_critic", 0.01)
        told = {"critic/vf_loss": mean(0.2), "loss": [0.2], "grad_norm": [0.1], "lr": [1e-5], "mfu": [0.2]}
        return Later(self._answer({}, told))

    def save_checkpoint(self, *args: Any, **settings: Any) -> None:
        spend("save", 0.01)

    def load_checkpoint(self, *args: Any, **settings: Any) -> None:
        spend("load", 0.01)


def mean(*values: float) -> Any:
    try:
        from verl.utils.metric import Metric
    except ImportError:  # 0.7.0
        return list(values)
    metric = Metric("mean")
    for value in values:
        metric.append(value)
    return metric


def metrics() -> dict[str, Any]:
    """What an update tells."""
    return {
        "actor/pg_loss": mean(0.1, -0.05),
        "actor/entropy_loss": mean(1.0),
        "kl_loss": mean(0.01),
        "kl_coef": [0.001],
        "actor/pg_clipfrac": mean(0.1),
        "actor/ppo_kl": mean(0.001),
        "actor/pg_clipfrac_lower": mean(0.0),
        "loss": [0.3, 0.2],
        "grad_norm": [0.5, 0.6],
        "lr": [1e-6],
        "mfu": [0.31, 0.33],
        "perf/max_memory_allocated_gb": [1.0],
        "perf/max_memory_reserved_gb": [2.0],
        "perf/cpu_memory_used_gb": [3.0],
    }


class Transfers:
    """In place of the checkpoint engine."""

    def update_weights(self, global_steps: int | None = None) -> dict[str, Any]:
        spend("update_weights", 0.01)
        return {}

    def sleep_replicas(self) -> None:
        pass


class Pools:
    def get_n_gpus(self) -> int:
        return 1


class Tokenizer:
    pad_token_id = 0
    eos_token_id = 1


def trainer(config: Any) -> Any:
    """The real trainer, with everything else in place of what needs a GPU."""
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer
    from verl.trainer.ppo.utils import Role

    made = RayPPOTrainer(
        config=config,
        tokenizer=Tokenizer(),
        role_worker_mapping={Role.ActorRolloutRef: object},
        resource_pool_manager=Pools(),
        train_dataset=Prompts(),
        val_dataset=Prompts(),
        train_sampler=torch.utils.data.SequentialSampler(Prompts()),
    )
    made.actor_rollout_wg = made.ref_policy_wg = made.critic_wg = Workers()
    made.async_rollout_manager = AgentLoops()
    made.async_rollout_mode = True
    made.checkpoint_manager = Transfers()
    made.reward_loop_manager = made.llm_server_manager = made.distillation_config = None
    return made


if __name__ == "__main__":
    rlotel.instrument()
    config = common.configuration("trainer.device=cpu", *sys.argv[1:])
    if "use_v1" in config.trainer:
        config.trainer.use_v1 = False
    if "use_legacy_worker_impl" in config.trainer:
        config.trainer.use_legacy_worker_impl = "disable"
    common.record_logs()
    trainer(config).fit()
