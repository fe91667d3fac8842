"""What NeMo RL's configuration says of a run: who it is, what its batches are and which GPUs it has."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from rlotel.derived import Hardware
from rlotel.integrations.configuration import checkpoint_tier, dig, model_name, product
from rlotel.integrations.tables import Timed
from rlotel.semconv import attributes as attr
from rlotel.semconv.attributes import CheckpointOperation
from rlotel.words import CHECKPOINT, SAMPLE, SYNC, TRAIN

_BATCHES = ("grpo", "ppo", "distillation")
"""Sections that say how many rollouts an iteration asks for."""
_LEARNER = "learner"
"""Where weights come from."""


class Setup:
    """One `master_config`, read as it is asked."""

    def __init__(self, config: object, algorithm: str, environments: object = None) -> None:
        self._config = config
        self._algorithm = algorithm
        self._environments = environments

    def identity(self) -> dict[str, str | None]:
        """Parts of the identity, None where the configuration does not say."""
        return {
            "system": "nemo-rl",
            "system_version": version(),
            "algorithm": self._name_of_algorithm(),
            "model": model_name(dig(self._config, "policy.model_name")),
            "environment": self._environment(),
        }

    def _name_of_algorithm(self) -> str:
        if self._algorithm == "GRPO":
            if dig(self._config, "grpo.use_dynamic_sampling"):
                return "DAPO"
            estimator = dig(self._config, "grpo.adv_estimator.name")  # from 0.6
            if isinstance(estimator, str) and estimator != "grpo":
                return estimator.upper()
        return self._algorithm

    def _environment(self) -> str | None:
        """The tasks that rollouts are made for, else the data set."""
        if isinstance(self._environments, Mapping) and self._environments:
            return ",".join(sorted(map(str, self._environments)))
        name = dig(self._config, "data.dataset_name") or dig(self._config, "data.train.dataset_name")
        return name if isinstance(name, str) else None

    def hardware(self) -> Hardware:
        """The GPUs of the cluster."""
        nodes, each = dig(self._config, "cluster.num_nodes"), dig(self._config, "cluster.gpus_per_node")
        return Hardware(gpus=product(nodes, each))

    @property
    def model_path(self) -> str | None:
        """Where the policy's model is: a folder or a name on the Hugging Face Hub."""
        name = dig(self._config, "policy.model_name")
        return str(name) if name else None

    @property
    def critic_path(self) -> str | None:
        """Not asked: an update's FLOPs are counted only where there is no critic."""
        return None

    @property
    def adapted(self) -> bool:
        """Whether adapters are trained instead of the model."""
        places = ("policy.dtensor_cfg.lora_cfg", "policy.dtensor_cfg.lora", "policy.megatron_cfg.peft")
        return any(dig(self._config, f"{place}.enabled") for place in places)

    @property
    def engine(self) -> str | None:
        """What makes rollouts, such as vllm."""
        name = dig(self._config, "policy.generation.backend")
        return str(name) if name else None

    @property
    def rollouts(self) -> int | None:
        """Rollouts that one iteration asks for."""
        for section in _BATCHES:
            prompts = dig(self._config, f"{section}.num_prompts_per_step")
            each = dig(self._config, f"{section}.num_generations_per_prompt")
            if rollouts := product(prompts, each):
                return rollouts
        return None

    @property
    def update_rows(self) -> int | None:
        """Rows of one optimizer step."""
        rows = dig(self._config, "policy.train_global_batch_size")
        return int(rows) if rows else None

    @property
    def checkpoint_tier(self) -> str | None:
        """Where checkpoints go, if the path says it; a mounted folder may be anything."""
        return checkpoint_tier(dig(self._config, "checkpointing.checkpoint_dir"))

    def attributes(self, timed: Timed) -> tuple[dict[str, str | bool | None], dict[str, int | None]]:
        """What is known of a phase as it begins: for its metric and span, and for its span alone."""
        if timed.phase == SAMPLE:
            return {attr.SAMPLE_KIND.name: timed.kind}, {attr.SAMPLE_BATCH_SIZE.name: self.rollouts}
        if timed.phase == TRAIN:
            return {attr.ROLE.name: timed.role}, {attr.TRAIN_BATCH_SIZE.name: self.update_rows}
        if timed.phase == SYNC:
            return {attr.SYNC_SOURCE.name: _LEARNER, attr.SYNC_DESTINATION.name: self.engine}, {}
        if timed.phase == CHECKPOINT:
            return self.checkpoint(blocking=True), {}
        return {attr.ROLE.name: timed.role}, {}

    def checkpoint(self, *, blocking: bool) -> dict[str, str | bool | None]:
        """What tells a checkpoint's phases apart: what training stands still for, and what goes on beside it."""
        return {
            attr.CHECKPOINT_OPERATION.name: CheckpointOperation.SAVE.value,
            attr.CHECKPOINT_TIER.name: self.checkpoint_tier,
            attr.CHECKPOINT_BLOCKING.name: blocking,
        }

    @property
    def saves(self) -> bool:
        """Whether checkpoints are saved."""
        return bool(dig(self._config, "checkpointing.enabled"))


UNKNOWN = Setup({}, "")
"""Of a process in which no training function runs."""


def version() -> str | None:
    """NeMo RL's version; a checkout is not installed, so its package has to say."""
    found = dig(sys.modules.get("nemo_rl"), "__version__")
    return str(found) if found else None


def reports_itself() -> bool:
    """Whether NeMo RL's own telemetry (after 0.7, `telemetry.enabled`) is on in this process."""
    setup = sys.modules.get("nemo_rl.telemetry.setup")
    handle = getattr(setup, "get_telemetry_handle", None)
    return handle is not None and handle() is not None
