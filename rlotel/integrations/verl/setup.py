"""What verl's configuration says of a run: who it is, what its batches are and which GPUs it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlotel.derived import Hardware
from rlotel.integrations.configuration import checkpoint_tier, data_set, dig, model_name, product
from rlotel.words import SAMPLE, TRAIN

_ALGORITHMS = {"gae": "PPO"}
"""Advantage estimators that are not called as their algorithm is."""


@dataclass(frozen=True)
class Updates:
    """How one model is updated."""

    mini_batch: int
    """Rows of one optimizer step."""
    epochs: int

    def steps(self, rows: int) -> int:
        """Optimizer steps that an update with `rows` rows takes."""
        return -(-rows // self.mini_batch) * self.epochs


class Setup:
    """A configuration that is read as it is asked: a dict or an OmegaConf object, of any version."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def get(self, path: str) -> Any:
        """The setting at a dotted path, None where there is none."""
        return dig(self._config, path)

    def identity(self) -> dict[str, str | None]:
        """Parts of the identity, None where the configuration does not say."""
        estimator = self.get("algorithm.adv_estimator")
        name = getattr(estimator, "value", estimator)
        return {
            "algorithm": None if name is None else _ALGORITHMS.get(str(name), str(name).upper()),
            "model": model_name(self.get("actor_rollout_ref.model.path")),
            "environment": data_set(self.get("data.train_files")),
        }

    def hardware(self) -> Hardware:
        """The GPUs; those that only make rollouts or serve another model are apart from those that train."""
        trainers = product(self.get("trainer.nnodes"), self.get("trainer.n_gpus_per_node"))
        if not trainers:
            return Hardware()
        rollouts = self._pool("actor_rollout_ref.rollout")
        others = sum(
            self._pool(place)
            for place in ("reward.reward_model", "reward_model")
            if self.get(f"{place}.enable") and self.get(f"{place}.enable_resource_pool")
        )
        teachers = self._pool("distillation") if self.get("distillation.enabled") else 0
        gpus = trainers + rollouts + others + teachers
        if gpus == trainers:
            return Hardware(gpus=gpus)
        return Hardware(gpus=gpus, gpus_of={TRAIN: trainers, SAMPLE: rollouts or trainers})

    def _pool(self, place: str) -> int:
        return product(self.get(f"{place}.nnodes"), self.get(f"{place}.n_gpus_per_node")) or 0

    @property
    def model_path(self) -> str | None:
        """Where the policy's model is: a folder or a name on the Hugging Face Hub."""
        path = self.get("actor_rollout_ref.model.path")
        return None if path is None else str(path)

    @property
    def critic_path(self) -> str | None:
        """The same of the critic's."""
        path = self.get("critic.model.path")
        return None if path is None else str(path)

    @property
    def adapted(self) -> bool:
        """Whether adapters are trained instead of the model."""
        rank = self.get("actor_rollout_ref.model.lora_rank") or self.get("actor_rollout_ref.model.lora.rank") or 0
        return bool(rank or self.get("actor_rollout_ref.model.lora_adapter_path"))

    @property
    def rollout(self) -> str | None:
        """The engine that makes rollouts, such as vllm."""
        name = self.get("actor_rollout_ref.rollout.name")
        return None if name is None else str(name)

    @property
    def rows(self) -> int | None:
        """Rollouts that one iteration asks for."""
        return product(self.get("data.train_batch_size"), self._repeats)

    @property
    def _repeats(self) -> int:
        return int(self.get("actor_rollout_ref.rollout.n") or 1)

    def updates(self, model: str) -> Updates | None:
        """How `actor_rollout_ref.actor` or `critic` is updated; its mini-batch is set in prompts."""
        prompts, epochs = self.get(f"{model}.ppo_mini_batch_size"), self.get(f"{model}.ppo_epochs")
        return Updates(int(prompts) * self._repeats, int(epochs)) if prompts and epochs else None

    @property
    def checkpoint_tier(self) -> str | None:
        """Where checkpoints go, if the path says it; a mounted folder may be anything."""
        return checkpoint_tier(self.get("trainer.default_hdfs_dir") or self.get("trainer.default_local_dir"))

    @property
    def saves_in_background(self) -> bool:
        """Whether Megatron goes on saving after the trainer goes on training."""
        return bool(self.get("actor_rollout_ref.actor.checkpoint.async_save"))

    def scores_in_trainer(self, version: tuple[int, ...]) -> bool:
        """Whether the timer `reward` is around the scoring, see `TIMERS`."""
        if version < (0, 7) or self.get("reward_model.use_reward_loop") is False:
            return True
        return any(
            self.get(f"{place}.enable") and not self.get(f"{place}.enable_resource_pool")
            for place in ("reward.reward_model", "reward_model")
        )
