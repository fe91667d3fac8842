"""What SkyRL's configuration says of a run: who it is, what its batches are and which GPUs it has."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rlotel.derived import Hardware
from rlotel.integrations import loops
from rlotel.integrations.configuration import checkpoint_tier, dig, model_name, product
from rlotel.words import SAMPLE, TRAIN

_ALGORITHMS = {"gae": "PPO"}
"""Advantage estimators that are not called as their algorithm is."""
_ENGINES = "generator.inference_engine"


def overrides(arguments: Sequence[str], packages: Sequence[str]) -> dict[str, Any] | None:
    """The settings that a command line gives, nested; None if it is not that of a launcher in these packages."""
    launchers = tuple(f"{package}.entrypoints." for package in packages)
    if not any(flag == "-m" and module.startswith(launchers) for flag, module in pairwise(arguments)):
        return None
    found: dict[str, Any] = {}
    for path, _, value in (argument.partition("=") for argument in arguments if "=" in argument):
        *folders, name = path.split(".")
        inner = found
        for folder in folders:
            if not isinstance(inner.get(folder), dict):  # a whole group may have been chosen by name before
                inner[folder] = {}
            inner = inner[folder]
        inner[name] = value
    return found


class Setup:
    """A configuration that is read as it is asked: dataclasses or an OmegaConf object, of any version.

    Args:
        config: SkyRL's.
        asynchronous: whether rollouts are made beside training, by tasks of their own.
    """

    def __init__(self, config: object, *, asynchronous: bool = False) -> None:
        self._config = config
        self.asynchronous = asynchronous

    def get(self, *paths: str) -> Any:
        """The setting at the first of these dotted paths that has one, None where none has."""
        return next((found for path in paths if (found := dig(self._config, path)) is not None), None)

    def identity(self) -> dict[str, str | None]:
        """Parts of the identity, None where the configuration does not say."""
        estimator = self.get("trainer.algorithm.advantage_estimator")
        name = None if estimator is None else str(getattr(estimator, "value", estimator))
        return {
            "algorithm": None if name is None else _ALGORITHMS.get(name, name.upper()),
            "model": model_name(self.model_path),
            "environment": self.get("environment.env_class"),
        }

    def phases(self) -> loops.Setup:
        """What it says of the phases."""
        return loops.Setup(
            sample_batch_size=product(self._prompts, self.repeats),
            train_batch_size=product(self.get("trainer.policy_mini_batch_size"), self.repeats),
            sync_destination=self.get(f"{_ENGINES}.backend", "generator.backend"),
            checkpoint_tier=checkpoint_tier(self.get("trainer.ckpt_path")),
        )

    @property
    def _prompts(self) -> Any:
        """Prompts of one call for rollouts: asynchronously they are taken one by one."""
        return 1 if self.asynchronous else self.get("trainer.train_batch_size")

    @property
    def repeats(self) -> int:
        """Rollouts of one prompt."""
        return int(self.get("generator.n_samples_per_prompt") or 1)

    @property
    def epochs(self) -> int:
        """How often an update goes through its rows."""
        return int(self.get("trainer.update_epochs_per_batch") or 1)

    @property
    def rows_are_turns(self) -> bool:
        """Whether each turn of an episode is a row of its own."""
        return bool(self.get("generator.step_wise_trajectories"))

    @property
    def saves_in_background(self) -> bool:
        """Whether Megatron goes on saving after the trainer goes on training (after 0.3)."""
        return bool(self.get("trainer.policy.megatron_config.async_dist_ckpt_save"))

    def hardware(self) -> Hardware:
        """The GPUs; engines have some of their own unless they share those of the trainer."""
        policy = self._gpus("policy")
        if not policy:
            return Hardware()
        if self.get("trainer.placement.colocate_all"):
            return Hardware(gpus=policy)
        trainers = policy + (self._gpus("critic") if self.critic_path else 0)
        engines = self._engines()
        return Hardware(
            gpus=trainers + self._reference_gpus() + engines,
            gpus_of={TRAIN: trainers, SAMPLE: engines},
        )

    def _gpus(self, model: str) -> int:
        place = f"trainer.placement.{model}_num"
        return product(self.get(f"{place}_nodes"), self.get(f"{place}_gpus_per_node")) or 0

    def _reference_gpus(self) -> int:
        """Those that only the reference has: by default it shares those of the policy."""
        needed = self.get("trainer.algorithm.use_kl_loss") or self.get("trainer.algorithm.use_kl_in_reward")
        return self._gpus("ref") if needed and not self.get("trainer.placement.colocate_policy_ref") else 0

    def _engines(self) -> int:
        found = int(self.get(f"{_ENGINES}.num_engines", "generator.num_inference_engines") or 1)
        for kind in ("tensor", "pipeline", "data"):
            size = f"{kind}_parallel_size"
            found *= int(self.get(f"{_ENGINES}.{size}", f"generator.inference_engine_{size}") or 1)
        return found

    @property
    def model_path(self) -> str | None:
        """Where the policy's model is: a folder or a name on the Hugging Face Hub."""
        path = self.get("trainer.policy.model.path")
        return None if path is None else str(path)

    @property
    def critic_path(self) -> str | None:
        """The same of the critic's."""
        path = self.get("trainer.critic.model.path")
        return None if path is None else str(path)

    @property
    def adapted(self) -> bool:
        """Whether adapters are trained instead of the model."""
        return bool(self.get("trainer.policy.model.lora.rank"))
