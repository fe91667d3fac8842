"""What AReaL's configuration says of a run: who it is, what its batches are and which GPUs it has."""

from __future__ import annotations

import contextlib
import os
import sys

from rlotel.derived import Hardware
from rlotel.integrations.areal.tables import EXPORTED, SAVED
from rlotel.integrations.configuration import checkpoint_tier, dig, model_name, product
from rlotel.integrations.tables import Timed
from rlotel.words import SAMPLE, TRAIN

_WITHOUT_ROLLOUTS = {"SFTConfig": "SFT", "DPOConfig": "DPO", "RWConfig": "RW"}
"""Configurations, by class, of trainers without rollouts, and what AReaL calls what they do."""
_ROLES = ("actor", "rollout", "critic", "ref", "teacher")


class Setup:
    """One experiment's configuration, read as it is asked."""

    def __init__(self, config: object) -> None:
        self._config = config

    def identity(self) -> dict[str, str | None]:
        """Parts of the identity, None where the configuration does not say."""
        return {
            "system": "areal",
            "system_version": version(),
            "algorithm": self._algorithm(),
            "model": model_name(dig(self._config, "actor.path")),
            "environment": model_name(dig(self._config, "train_dataset.path")),
        }

    def _algorithm(self) -> str | None:
        for kind in type(self._config).__mro__:
            if (name := _WITHOUT_ROLLOUTS.get(kind.__name__)) is not None:
                return name
        if dig(self._config, "gconfig") is None:
            return None
        if dig(self._config, "critic") is not None:
            return "PPO"
        if dig(self._config, "actor.use_sapo_loss"):
            return "SAPO"
        if dig(self._config, "actor.m2_threshold") is not None:
            return "M2PO"
        return "GSPO" if dig(self._config, "actor.importance_sampling_level") == "sequence" else "GRPO"

    def hardware(self) -> Hardware:
        """The GPUs; those that make rollouts are apart from those that train, unless they are the same."""
        gpus: dict[str, int] = {}
        for role in _ROLES:
            if not self._is_there(role) or self._shares_gpus(role):
                continue
            if not (known := self._gpus(role)):
                return Hardware()
            gpus[role] = known
        total = sum(gpus.values()) or None
        if "actor" not in gpus or "rollout" not in gpus:
            return Hardware(gpus=total)
        return Hardware(
            gpus=total, gpus_of={TRAIN: gpus["actor"] + gpus.get("critic", 0), SAMPLE: gpus["rollout"]}
        )

    def _is_there(self, role: str) -> bool:
        if role == "ref" and dig(self._config, "gconfig") is not None and not dig(self._config, "actor.kl_ctl"):
            return False  # a reference model without a say in the reward is not loaded
        return dig(self._config, role) is not None

    def _shares_gpus(self, role: str) -> bool:
        """Whether it has none of its own: where all ranks run the loop, they hold all models that are trained."""
        if single_program() and role in ("critic", "ref"):
            return True
        kind = dig(self._config, f"{role}.scheduling_strategy.type")
        return str(getattr(kind, "value", kind)) == "colocation"

    def _gpus(self, role: str) -> int:
        """As many as the role has processes, which AReaL's own parser knows; 0 where that is unknown."""
        parser = getattr(sys.modules.get("areal.api.alloc_mode"), "ModelAllocation", None)
        if parser is not None and (backend := self._backend(role)):
            with contextlib.suppress(Exception):  # whatever its grammar finds wrong, AReaL says itself
                return int(parser.from_str(backend).parallel.world_size)
        return 0

    def _backend(self, role: str) -> str:
        """Such as `fsdp:d4`; empty where it is not said for each role, as before 1.0.1."""
        place = f"teacher.{dig(self._config, 'teacher.engine_type')}" if role == "teacher" else role
        return str(dig(self._config, f"{place}.backend") or "")

    @property
    def engine(self) -> str | None:
        """What makes rollouts, such as sglang."""
        return self._backend("rollout").partition(":")[0] or None

    @property
    def rollouts(self) -> int | None:
        """Rollouts that one iteration waits for; None where that varies."""
        if dig(self._config, "dynamic_bs"):
            return None
        return product(dig(self._config, "train_dataset.batch_size"), dig(self._config, "gconfig.n_samples"))

    @property
    def update_rows(self) -> int | None:
        """Rows of one optimizer step."""
        if dig(self._config, "gconfig") is None:
            rows = dig(self._config, "train_dataset.batch_size")
            return int(rows) if rows else None
        steps = dig(self._config, "actor.ppo_n_minibatches")
        return self.rollouts // int(steps) if self.rollouts and steps else None

    @property
    def checkpoint_tier(self) -> str | None:
        """Where checkpoints go, if the path says it; a mounted folder may be anything."""
        return checkpoint_tier(dig(self._config, "recover.fileroot") or dig(self._config, "saver.fileroot"))

    @property
    def weights(self) -> Timed:
        """What saving the weights is: all there is to come back to, where no checkpoints are saved."""
        recovers = dig(self._config, "recover.mode") not in (None, "disabled", "off")
        behind = self._backend("actor").startswith("archon") and dig(self._config, "saver.mode") != "sync"
        return EXPORTED if recovers or behind else SAVED

    @property
    def penalty(self) -> float:
        """What the KL divergence from the reference model is multiplied with in the reward; 0 without one."""
        return float(dig(self._config, "actor.kl_ctl") or 0.0) if dig(self._config, "ref") is not None else 0.0


def single_program() -> bool:
    """Whether all trainers run the loop together, instead of one controller that calls them."""
    return os.environ.get("AREAL_SPMD_MODE", "").lower() in {"1", "true"}


def version() -> str | None:
    """AReaL's version; a checkout is not installed and does not know."""
    info = getattr(sys.modules.get("areal.version"), "version_info", None)
    found = getattr(info, "version", None)
    return None if found is None or str(found).startswith("0.0.0") else str(found)
