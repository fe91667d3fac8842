"""Stand-in: what is watched of what makes experience."""

from typing import Any

from openrlhf.script import play


class RemoteExperienceMaker:
    def __init__(
        self, actor_model_group: Any, critic_model_group: Any, reward_model_group: Any, initial_model_group: Any
    ) -> None:
        self.actor_model_group = actor_model_group
        self.critic_model_group = critic_model_group
        self.reward_model_group = reward_model_group
        self.initial_model_group = initial_model_group

    def make_experience_batch(self, rollout_samples: Any) -> Any:
        return play("RemoteExperienceMaker.make_experience_batch", locals())

    def _dispatch_forward(self, group: Any, sync_condition: bool, **kwargs: Any) -> Any:
        return play("RemoteExperienceMaker._dispatch_forward", locals())

    def _flatten_results(self, refs: Any, duplicate_factor: int) -> Any:
        return play("RemoteExperienceMaker._flatten_results", locals())

    def compute_advantages_and_returns(self, experiences: Any) -> Any:
        return play("RemoteExperienceMaker.compute_advantages_and_returns", locals())
