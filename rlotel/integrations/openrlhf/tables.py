"""What OpenRLHF's log keys, models and advantage estimators mean in our words: the tables.

Read from the sources of 0.9.10, 0.10.4 and 0.11.2, which log the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlotel.integrations.tables import Gauge, Gauges, Timed, kl, loss, of
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import KlReference, LossType, Role
from rlotel.words import REWARD, TRAIN

EXPERIENCE = "experience"
"""The phase in which rollouts become what is trained on: all forward passes, rewards of a model, advantages."""

GAUGES: Gauges = {
    # Before length penalties and the KL penalty, and of all rollouts; `reward` is a mean over micro-batches.
    "rollout/reward_mean": Gauge(m.ENVIRONMENT_REWARD_MEAN),
    # From the first generated token to the last one, with what an environment answered in between.
    "rollout/response_length_mean": Gauge(m.ENVIRONMENT_EPISODE_LENGTH_MEAN),
    "rollout/truncated_rate": Gauge(m.SAMPLE_TRUNCATED_RATIO),
    "policy_loss": loss(LossType.POLICY),
    "critic_loss": loss(LossType.VALUE),
    # 0 where there is no reference model.
    "kl": kl(KlReference.REFERENCE, zero_is_unknown=True),
    "ppo_kl": kl(KlReference.OLD_POLICY),
    "vllm_kl": kl(KlReference.ROLLOUT),
    "entropy_loss": Gauge(m.ENTROPY),  # the mean entropy itself, whatever its name
    "ppo_clip_ratio": of(m.TRAIN_CLIP_RATIO, Role.ACTOR),
    "actor_grad_norm": of(m.GRAD_NORM, Role.ACTOR),
    "critic_grad_norm": of(m.GRAD_NORM, Role.CRITIC),
    "actor_lr": of(m.LEARNING_RATE, Role.ACTOR),
    "critic_lr": of(m.LEARNING_RATE, Role.CRITIC),
}

KL_LOSS: Gauges = {"kl": loss(LossType.KL_DIVERGENCE)}
"""What `kl` is as well where it is a part of the loss, before its coefficient."""

EVALUATION = "eval_"
"""What the names of an evaluation's scores begin with."""
SIZES = frozenset({"eval_num_samples"})
"""What comes among them and is no score."""

FORWARD: Mapping[Role, Timed] = {
    Role.ACTOR: Timed("logprob", Role.ACTOR),
    Role.REFERENCE: Timed("ref_logprob", Role.REFERENCE),
    Role.CRITIC: Timed("value", Role.CRITIC),
    Role.REWARD: Timed(REWARD),
}
"""What a forward pass of a model is for."""

UPDATE: Mapping[Role, Timed] = {Role.ACTOR: Timed(TRAIN, Role.ACTOR), Role.CRITIC: Timed(TRAIN, Role.CRITIC)}

GROUPS: Mapping[str, Role] = {
    "actor_model_group": Role.ACTOR,
    "critic_model_group": Role.CRITIC,
    "reward_model_group": Role.REWARD,
    "initial_model_group": Role.REFERENCE,
    "reference_model_group": Role.REFERENCE,
}
"""Attributes of a trainer and of an experience maker that hold the workers of a model."""

WORKERS: Mapping[str, Role] = {
    "PolicyModelActor": Role.ACTOR,
    "CriticModelActor": Role.CRITIC,
    "RewardModelActor": Role.REWARD,
    "ReferenceModelActor": Role.REFERENCE,
}
"""The classes of those workers."""

ALGORITHMS: Mapping[str, str] = {
    "gae": "PPO",
    "group_norm": "GRPO",
    "dr_grpo": "Dr. GRPO",
    "reinforce": "REINFORCE++",
    "reinforce_baseline": "REINFORCE++-baseline",
    "flash_reinforce": "FlashREINFORCE",
}
"""Advantage estimators that are not called as their algorithm is."""
