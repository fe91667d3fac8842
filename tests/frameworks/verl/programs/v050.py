"""`RayPPOTrainer.fit` of verl 0.5 and 0.6, with workers that only pass time. Takes one override an argument."""

import sys
from typing import Any

import common  # type: ignore[import-not-found]
import torch
from common import PROMPT, RESPONSE, spend
from tensordict import TensorDict

import rlotel


class Prompts(torch.utils.data.Dataset[Any]):  # type: ignore[misc]
    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> dict[str, Any]:
        ids = torch.randint(5, 99, (PROMPT,))
        return {
            "input_ids": ids,
            "attention_mask": torch.ones(PROMPT, dtype=torch.long),
            "position_ids": torch.arange(PROMPT),
            "raw_prompt_ids": ids.tolist(),
            "data_source": "made-up",
            "reward_model": {"ground_truth": "1"},
            "index": index,
        }


class Workers:
    """In place of the worker groups of actor, rollout, reference and critic."""

    world_size = 1

    def _answer(self, tensors: dict[str, torch.Tensor], rows: int, **told: Any) -> Any:
        from verl import DataProto

        return DataProto(batch=TensorDict(tensors, batch_size=rows), meta_info=told)

    def generate_sequences(self, prompts: Any) -> Any:
        spend("generate", 0.03)
        rows, asked = len(prompts), prompts.batch["input_ids"]
        _, response_lengths = common.lengths(rows)
        mask = (torch.arange(RESPONSE)[None] < response_lengths[:, None]).long()
        answered = torch.randint(5, 99, (rows, RESPONSE))
        tensors = {
            "prompts": asked,
            "responses": answered,
            "input_ids": torch.cat([asked, answered], 1),
            "attention_mask": torch.cat([prompts.batch["attention_mask"], mask], 1),
            "position_ids": torch.arange(PROMPT + RESPONSE)[None].repeat(rows, 1),
        }
        return self._answer(tensors, rows, timing={"generate_sequences": 0.02, "reshard": 0.005})

    def compute_log_prob(self, rows: Any) -> Any:
        spend("log_prob", 0.01)
        size = len(rows), RESPONSE
        return self._answer({"old_log_probs": -torch.rand(size), "entropys": torch.rand(size)}, len(rows))

    def compute_ref_log_prob(self, rows: Any) -> Any:
        return self._answer({"ref_log_prob": -torch.rand(len(rows), RESPONSE)}, len(rows))

    def update_actor(self, rows: Any) -> Any:
        from verl import DataProto

        spend("update_actor", 0.02)
        told = {
            "actor/pg_loss": [0.1, 0.2],
            "actor/kl_loss": [0.01],
            "actor/grad_norm": [0.5],
            "actor/lr": 1e-6,
            "actor/ppo_kl": [0.0],
            "actor/pg_clipfrac": [0.0],
            "perf/mfu/actor": 0.3,
            "perf/max_memory_allocated_gb": [1.0],
        }
        return DataProto(meta_info={"metrics": told})

    def save_checkpoint(self, *args: Any, **settings: Any) -> None:
        spend("save", 0.01)

    def load_checkpoint(self, *args: Any, **settings: Any) -> None:
        pass  # 0.6 calls it whether or not there is one


def score(batch: Any, return_dict: bool = False) -> Any:
    spend("reward", 0.01)
    scores = torch.zeros_like(batch.batch["responses"], dtype=torch.float32)
    scores[:, 0] = torch.randint(0, 2, (len(batch),)).float()
    return {"reward_tensor": scores, "reward_extra_info": {}} if return_dict else scores


class Pools:
    def get_n_gpus(self) -> int:
        return 1


class Tokenizer:
    pad_token_id = 0
    eos_token_id = 1


def trainer(config: Any) -> Any:
    """The real trainer, with everything else in place of what needs a GPU."""
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer, Role

    made = RayPPOTrainer(
        config=config,
        tokenizer=Tokenizer(),
        role_worker_mapping={Role.ActorRollout: object, Role.RefPolicy: object},
        resource_pool_manager=Pools(),
        reward_fn=score,
        val_reward_fn=None,
        train_dataset=Prompts(),
        val_dataset=Prompts(),
        train_sampler=torch.utils.data.SequentialSampler(Prompts()),
        device_name="cpu",
    )
    made.actor_rollout_wg = made.ref_policy_wg = made.critic_wg = Workers()
    made.async_rollout_mode = made.ref_in_actor = False
    return made


if __name__ == "__main__":
    rlotel.instrument()
    config = common.configuration("trainer.device=cpu", *sys.argv[1:])
    common.record_logs()
    trainer(config).fit()
