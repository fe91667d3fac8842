"""`FullyAsyncTrainer.fit` of verl 0.9: it takes rollouts from a queue, and logs once for two steps.

Its rollouter, an actor of Ray's, and the queue are stood in for. It runs in this process instead of an actor.
"""

import asyncio
import concurrent.futures
import sys
from types import SimpleNamespace
from typing import Any

import common  # type: ignore[import-not-found]
import torch
import v0  # type: ignore[import-not-found]
from common import PROMPTS, REPEATS, spend

import rlotel

STEPS = 4


class Answer:
    """What a remote call gives: to be asked for at once, or awaited."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def future(self) -> Any:
        done: concurrent.futures.Future[Any] = concurrent.futures.Future()
        done.set_result(self.value)
        return done


class Rollouter:
    """Methods that are called with `.remote()`."""

    def __init__(self) -> None:
        self.get_total_produced_samples = self._method(16)
        self.get_completed_steps = self._method(1)
        self.reset_staleness = self._method({"fully_async/rollouter/idle_ratio": 0.1})

    def _method(self, value: Any) -> Any:
        return SimpleNamespace(remote=lambda: Answer(value))


def batch() -> Any:
    """Rollouts from the queue."""
    from verl import DataProto

    rows = [v0.Prompts()[index] for index in range(PROMPTS)]
    asked = DataProto.from_single_dict({"dummy_tensor": torch.stack([row["dummy_tensor"] for row in rows])})
    made = asked.repeat(REPEATS, interleave=True)
    made = made.union(v0.AgentLoops().generate_sequences(made))
    made.non_tensor_batch["uid"] = v0.np.array([str(row // REPEATS) for row in range(len(made))], dtype=object)
    made.meta_info["trajectory_param_versions"] = [0] * len(made)
    made.meta_info["global_token_num"] = made.batch["attention_mask"].sum(-1).tolist()
    made.meta_info["images_seqlens"] = []
    return made


def trainer(config: Any) -> Any:
    """The real trainer, with everything else in place of what needs a GPU or an actor."""
    from verl.experimental.fully_async_policy import fully_async_trainer as module
    from verl.trainer.ppo.utils import Role

    module.ray = SimpleNamespace(get=lambda answers: [answer.value for answer in answers])
    left = iter(range(STEPS))

    class Trainer(module.FullyAsyncTrainer.__ray_metadata__.modified_class):  # type: ignore[misc]
        async def _get_samples_from_queue(self) -> Any:
            return (0, batch()) if next(left, None) is not None else (None, None)

    class Transfers(v0.Transfers):  # type: ignore[misc]
        async def update_weights(self, global_steps: int | None = None) -> Any:
            return super().update_weights(global_steps)

    made = Trainer(
        config=config,
        tokenizer=v0.Tokenizer(),
        role_worker_mapping={Role.Actor: object},
        resource_pool_manager=v0.Pools(),
    )
    made.actor_rollout_wg = made.ref_policy_wg = v0.Workers()
    for name in ("save_model_to_cpu", "restore_model_from_cpu", "clear_cpu_model"):
        setattr(v0.Workers, name, lambda self, version: None)
    made.checkpoint_manager, made.rollouter = Transfers(), Rollouter()
    made.message_queue_client = SimpleNamespace(get_queue_size_sync=lambda: 0)
    made.progress_bar = SimpleNamespace(update=lambda steps: None, close=lambda: None)
    made.train_dataset = v0.Prompts()
    made._save_checkpoint = lambda: spend("save", 0.01)
    return made


if __name__ == "__main__":
    rlotel.instrument()
    config = common.configuration(
        "trainer.device=cpu",
        "trainer.use_v1=False",
        "actor_rollout_ref.hybrid_engine=False",
        "+async_training.trigger_parameter_sync_step=2",
        "+async_training.require_batches=2",
        "+async_training.use_trainer_do_validate=False",
        "+async_training.staleness_threshold=1",
        "+rollout.nnodes=1",
        "+rollout.n_gpus_per_node=2",
        *sys.argv[1:],
    )
    common.record_logs()
    asyncio.run(trainer(config).fit())
