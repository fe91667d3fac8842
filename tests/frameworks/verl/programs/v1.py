"""What stands in for GPUs in a V1 run: verl itself loads this in its processes, as `VERL_USE_EXTERNAL_MODULES`.

The trainer, its replay buffer, TransferQueue, agent loop workers and the chain from the launcher on are verl's.
"""

import asyncio
from typing import Any, ClassVar

import common  # type: ignore[import-not-found]
import ray
import torch
import wrapt
from common import spend


class Prompts(torch.utils.data.Dataset[Any]):  # type: ignore[misc]
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {
            "raw_prompt": [{"role": "user", "content": f"question {index}"}],
            "data_source": "made-up",
            "reward_model": {"ground_truth": "1"},
            "index": index,
        }


@ray.remote
class Scorer:
    """In place of a reward loop worker."""

    async def compute_score(self, data: Any) -> dict[str, Any]:
        await asyncio.sleep(0.02)
        return {"reward_score": float(data.batch["responses"].sum().item() % 2), "reward_extra_info": {"acc": 1.0}}


class Workers:
    """In place of the worker groups of actor and reference."""

    world_size = 1
    _dispatch_info: ClassVar[dict[str, Any]] = {}

    def _query_dispatch_info(self, role: str) -> list[int]:
        return [0]

    def _log_prob(self, batch: Any, *, entropy: bool) -> Any:
        import transfer_queue as tq
        from tensordict import TensorDict

        spend("log_prob", 0.01)
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=["input_ids"])
        offsets = data["input_ids"].offsets()

        def nested() -> torch.Tensor:
            return torch.nested.nested_tensor_from_jagged(-torch.rand(int(offsets[-1])), offsets=offsets)

        fields = {"log_probs": nested(), **({"entropy": nested()} if entropy else {})}
        tq.kv_batch_put(
            keys=batch.keys,
            partition_id=batch.partition_id,
            fields=TensorDict(fields, batch_size=len(batch)),
        )
        return batch

    def compute_log_prob(self, batch: Any) -> Any:
        return self._log_prob(batch, entropy=True)

    def compute_ref_log_prob(self, batch: Any) -> Any:
        return self._log_prob(batch, entropy=False)

    def update_actor(self, batch: Any) -> dict[str, Any]:
        from v0 import metrics  # type: ignore[import-not-found]

        spend("update_actor", 0.02)
        return {"metrics": metrics()}

    def update_weights(self, **settings: Any) -> Any:
        spend("update_weights", 0.01)
        return ray.put(None)

    def save_checkpoint(self, *args: Any, **settings: Any) -> None:
        spend("save", 0.01)


class Pools:
    def get_n_gpus(self) -> int:
        return 1


class Rewards:
    def __init__(self) -> None:
        self.reward_loop_worker_handles = [Scorer.remote()]  # type: ignore[attr-defined]


def register(module: Any) -> None:
    """Make a trainer without GPUs known under the name that the settings ask for."""
    import made_up  # type: ignore[import-not-found]  # noqa: F401 - it makes itself known
    from verl.checkpoint_engine import CheckpointEngineManager
    from verl.trainer.ppo.v1 import trainer_base
    from verl.utils.config import omega_conf_to_dataclass

    @module.register_trainer("without_gpus")
    class Trainer(module.PPOTrainerSync):  # type: ignore[misc]
        def _setup(self) -> None:
            self._init_tokenizer()
            original, trainer_base.create_rl_dataset = trainer_base.create_rl_dataset, lambda *a, **k: Prompts()
            try:
                self._init_dataloader()
            finally:
                trainer_base.create_rl_dataset = original
            self._init_dump_executor()
            self.resource_pool_manager, self.reward_loop_manager = Pools(), Rewards()
            self.actor_rollout_wg = self.ref_policy_wg = Workers()
            self.ref_in_actor = False
            self.llm_server_manager = self.teacher_model_manager = self.distillation_config = None
            engine = omega_conf_to_dataclass(self.config.actor_rollout_ref.rollout.checkpoint_engine)
            self.checkpoint_manager = CheckpointEngineManager(engine, self.actor_rollout_wg, [])
            self._load_checkpoint()
            common.record_logs()

        def get_llm_client(self) -> None:
            return None


wrapt.register_post_import_hook(register, "verl.trainer.ppo.v1")
