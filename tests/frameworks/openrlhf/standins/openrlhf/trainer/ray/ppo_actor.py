"""Stand-in: what is watched of a worker that trains."""

from typing import Any

from openrlhf.script import play


class ActorPPOTrainer:
    def ppo_train(self, kl_ctl: float) -> Any:
        return play("ActorPPOTrainer.ppo_train", locals())

    def broadcast_to_vllm(self) -> Any:
        return play("ActorPPOTrainer.broadcast_to_vllm", locals())
