"""`OneStepOffRayTrainer.fit` of verl 0.9: rollouts are made one step ahead, beside the update."""

import asyncio
import sys
from typing import Any

import common  # type: ignore[import-not-found]
import torch
import v0  # type: ignore[import-not-found]

import rlotel


class AgentLoops(v0.AgentLoops):  # type: ignore[misc]
    """As in V0, but awaited."""

    async def generate_sequences(self, prompts: Any) -> Any:
        return await asyncio.to_thread(super().generate_sequences, prompts)


def trainer(config: Any) -> Any:
    """The real trainer, with everything else in place of what needs a GPU."""
    from verl.experimental.one_step_off_policy.ray_trainer import OneStepOffRayTrainer
    from verl.trainer.ppo.utils import Role

    made = OneStepOffRayTrainer(
        config=config,
        tokenizer=v0.Tokenizer(),
        role_worker_mapping={Role.Actor: object},
        resource_pool_manager=v0.Pools(),
        train_dataset=v0.Prompts(),
        val_dataset=v0.Prompts(),
        train_sampler=torch.utils.data.SequentialSampler(v0.Prompts()),
    )
    made.actor_rollout_wg = made.actor_wg = made.ref_policy_wg = made.critic_wg = v0.Workers()
    made.async_rollout_manager = AgentLoops()
    made.async_rollout_mode = True
    made.checkpoint_manager = v0.Transfers()
    made.reward_loop_manager = made.llm_server_manager = made.distillation_config = None
    return made


if __name__ == "__main__":
    rlotel.instrument()
    config = common.configuration(
        "trainer.device=cpu",
        "trainer.use_v1=False",
        "actor_rollout_ref.hybrid_engine=False",
        "actor_rollout_ref.rollout.nnodes=1",
        "actor_rollout_ref.rollout.n_gpus_per_node=2",
        *sys.argv[1:],
    )
    common.record_logs()
    asyncio.run(trainer(config).fit())
