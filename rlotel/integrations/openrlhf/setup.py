"""What OpenRLHF's arguments say of a run: who it is, what its batches are and which GPUs it has.

They are nested from 0.10 on (`args.actor.num_nodes`) and flat before (`args.actor_num_nodes`).
"""

from __future__ import annotations

from typing import Any

from rlotel.derived import Hardware
from rlotel.integrations import loops
from rlotel.integrations.configuration import checkpoint_tier, data_set, dig, model_name, product, version
from rlotel.integrations.openrlhf.tables import ALGORITHMS
from rlotel.words import SAMPLE, TRAIN

_FLAT = {
    "actor.model_name_or_path": "pretrain",
    "critic.model_name_or_path": "critic_pretrain",
    "algo.advantage.estimator": "advantage_estimator",
    "algo.kl.init_coef": "init_kl_coef",
    "algo.kl.use_loss": "use_kl_loss",
    "ckpt.disable_ds": "disable_ds_ckpt",
    "ckpt.save_hf": "save_hf_ckpt",
    "data.prompt_dataset": "prompt_data",
    "ds.lora.rank": "lora_rank",
    "reward.remote_url": "remote_rm_url",
    "rollout.n_samples_per_prompt": "n_samples_per_prompt",
    "rollout.vllm_generate_batch_size": "vllm_generate_batch_size",
    "train.agent_func_path": "agent_func_path",
    "train.async_enable": "async_train",
    "train.colocate_actor_ref": "colocate_actor_ref",
    "train.colocate_all": "colocate_all_models",
    "train.colocate_critic_reward": "colocate_critic_reward",
    "train.dynamic_batch_enable": "use_dynamic_batch",
    "train.max_epochs": "max_epochs",
    "train.num_episodes": "num_episodes",
    "train.partial_rollout_enable": "partial_rollout",
}
"""Settings that were not called as they are now with underscores for dots."""

_FILES = (".json", ".jsonl", ".csv", ".parquet", ".arrow")


class Setup:
    """The arguments of a run, read as they are asked for."""

    def __init__(self, args: object = None) -> None:
        self._args = args

    def get(self, path: str) -> Any:
        """The setting that is at this dotted path now, None where there is none."""
        found = dig(self._args, path)
        return dig(self._args, _FLAT.get(path, path.replace(".", "_"))) if found is None else found

    @property
    def trains_by_rollouts(self) -> bool:
        """Whether these are the arguments of PPO and the like; others have a loop of another kind."""
        return bool(self.get("rollout.batch_size"))

    def identity(self) -> dict[str, str | None]:
        """Parts of the identity, None where the arguments do not say."""
        estimator = self.get("algo.advantage.estimator")
        return {
            "system": "openrlhf",
            "system_version": version("openrlhf"),
            "algorithm": None if estimator is None else ALGORITHMS.get(estimator, str(estimator).upper()),
            "model": model_name(self.get("actor.model_name_or_path")),
            "environment": _prompts(self.get("data.prompt_dataset")),
        }

    def phases(self) -> loops.Setup:
        """What is said of phases."""
        return loops.Setup(
            sample_batch_size=product(
                self.get("rollout.vllm_generate_batch_size") or self.get("rollout.batch_size"),
                self.get("rollout.n_samples_per_prompt"),
            ),
            train_batch_size=self.get("train.batch_size"),
            sync_destination="vllm",
            checkpoint_tier=checkpoint_tier(self.get("ckpt.path")),
        )

    @property
    def rows(self) -> int | None:
        """Rollouts that an iteration trains on."""
        return product(self.get("rollout.batch_size"), self.get("rollout.n_samples_per_prompt"))

    def hardware(self) -> Hardware:
        """The GPUs, as the launcher places models on them."""
        actor, engines = self._gpus("actor"), product(self.get("vllm.num_engines"), self._tensor_parallel) or 0
        critic = self._gpus("critic") if self.get("critic.model_name_or_path") else 0
        reward = 0 if self.get("reward.remote_url") else self._gpus("reward")
        reference = self._gpus("ref") if self.get("algo.kl.init_coef") else 0
        if not actor:
            return Hardware()
        together = bool(self.get("train.colocate_all"))
        if together:
            critic = reward = 0
        elif self.get("train.colocate_critic_reward"):
            reward = 0 if critic else reward
        if together or self.get("train.colocate_actor_ref"):
            reference = 0
        if together and not self.get("train.async_enable"):
            return Hardware(gpus=actor)
        gpus_of = {TRAIN: actor + critic, SAMPLE: engines or actor}
        return Hardware(gpus=actor + critic + reward + reference + engines, gpus_of=gpus_of)

    def _gpus(self, model: str) -> int:
        return product(self.get(f"{model}.num_nodes"), self.get(f"{model}.num_gpus_per_node")) or 0

    @property
    def _tensor_parallel(self) -> int:
        return int(self.get("vllm.tensor_parallel_size") or 1)

    @property
    def model_path(self) -> str | None:
        """Where the policy's model is: a folder or a name on the Hugging Face Hub."""
        return self.get("actor.model_name_or_path")  # type: ignore[no-any-return]

    @property
    def critic_path(self) -> str | None:
        """The same of the critic's."""
        return self.get("critic.model_name_or_path")  # type: ignore[no-any-return]

    @property
    def adapted(self) -> bool:
        """Whether adapters are trained instead of the model."""
        return bool(self.get("ds.lora.rank"))

    @property
    def kl_is_loss(self) -> bool:
        """Whether the KL divergence from the reference is a part of the loss."""
        return bool(self.get("algo.kl.use_loss") and self.get("algo.kl.init_coef"))

    @property
    def saves(self) -> bool:
        """Whether what OpenRLHF does when it is time for a checkpoint writes one."""
        return not self.get("ckpt.disable_ds") or bool(self.get("ckpt.save_hf"))

    @property
    def one_policy_each(self) -> bool:
        """Whether each rollout is made by one version of the policy, from its first token to its last."""
        return not self.get("train.partial_rollout_enable")


def _prompts(data: object) -> str | None:
    """The data set of `openai/gsm8k@socratic` or of a file; None of several."""
    text = str(data or "").partition("@")[0].strip()
    if "," in text:
        return None
    return data_set(text) if text.endswith(_FILES) else model_name(text)
