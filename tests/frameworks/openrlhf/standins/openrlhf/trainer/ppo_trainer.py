"""Stand-in: what is watched of the trainer."""

from typing import Any

from openrlhf.script import play


class BasePPOTrainer:
    def __init__(
        self,
        strategy: Any,
        actor_model_group: Any,
        critic_model_group: Any,
        reward_model_group: Any,
        reference_model_group: Any,
        vllm_engines: Any,
        tokenizer: Any,
    ) -> None:
        self.actor_model_group = actor_model_group
        self.critic_model_group = critic_model_group
        self.reward_model_group = reward_model_group
        self.reference_model_group = reference_model_group

    def train_step(self, rollout_samples: Any, global_step: int) -> Any:
        return play("BasePPOTrainer.train_step", locals())

    def ppo_train(self, global_steps: int) -> Any:
        return play("BasePPOTrainer.ppo_train", locals())

    def broadcast_to_vllm(self) -> Any:
        return play("BasePPOTrainer.broadcast_to_vllm", locals())

    def save_best_checkpoint(self, eval_metrics: Any, global_step: int, client_states: Any = None) -> Any:
        return play("BasePPOTrainer.save_best_checkpoint", locals())

    def save_logs_and_checkpoints(self, global_step: int, logs_dict: Any = None, client_states: Any = None) -> Any:
        return play("BasePPOTrainer.save_logs_and_checkpoints", locals())

    def init_checkpoint_states(self) -> Any:
        return play("BasePPOTrainer.init_checkpoint_states", locals())
