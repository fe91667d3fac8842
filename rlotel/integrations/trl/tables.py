"""What TRL's methods and log keys mean in our words: the tables.

Read from the sources of 0.29.1, 1.0.0, 1.12.0 and 1.16.0, with transformers 5.24.
"""

from __future__ import annotations

from rlotel.integrations.tables import Gauge, Gauges, Timed, kl, loss
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import CheckpointOperation, KlReference, LossType, PhaseName, Role, SampleKind
from rlotel.words import CHECKPOINT, REWARD, SAMPLE, SYNC

TAG = "trl"
"""What every trainer of TRL has first among its tags, and so does a copy of one, as Unsloth makes them."""

ROLLOUT = Timed(SAMPLE, kind=SampleKind.GENERATE)
WAIT = Timed(SAMPLE, kind=SampleKind.WAIT)
DATA = Timed(PhaseName.DATA.value)
TOOL = Timed("tool")
EVALUATE = Timed(PhaseName.EVALUATE.value)
SAVE = Timed(CHECKPOINT, operation=CheckpointOperation.SAVE)
RESTORE = Timed(CHECKPOINT, operation=CheckpointOperation.RESTORE)
LOGPROB = Timed(PhaseName.LOGPROB.value, Role.ACTOR.value)
REF_LOGPROB = Timed(PhaseName.REF_LOGPROB.value, Role.REFERENCE.value)

SCORE = Timed(REWARD)
TRANSFER = Timed(SYNC)

TRANSFERS = (
    "trl.generation.vllm_generation:VLLMGeneration.sync_weights",
    "trl.experimental.async_grpo.async_grpo_trainer:AsyncGRPOTrainer._sync_weight",
    "trl.experimental.async_distillation.async_distillation_trainer:AsyncDistillationTrainer._sync_weight",
)
"""What moves weights to the engines. A trainer may keep its own method before it is met."""

HIDDEN = frozenset({"gkd", "gold", "iw-opd", "online-dpo"})
"""Algorithms that make rollouts in functions of their own, inside of an update: their phases can't be told."""

UPDATE: Gauges = {
    "loss": loss(LossType.TOTAL),
    "policy_loss": loss(LossType.POLICY),  # only where an entropy bonus is beside it
    "grad_norm": Gauge(m.GRAD_NORM),
    "learning_rate": Gauge(m.LEARNING_RATE),
    "entropy": Gauge(m.ENTROPY),
}
"""What all trainers log."""

_ROLLOUTS: Gauges = {
    **UPDATE,
    "reward": Gauge(m.ENVIRONMENT_REWARD_MEAN),
    "completions/mean_length": Gauge(m.ENVIRONMENT_EPISODE_LENGTH_MEAN),
    "completions/clipped_ratio": Gauge(m.SAMPLE_TRUNCATED_RATIO),
    "clip_ratio/region_mean": Gauge(m.TRAIN_CLIP_RATIO),
}

ONLINE: Gauges = {
    **_ROLLOUTS,
    "kl": kl(KlReference.REFERENCE),
    "cispo_clip_ratio": Gauge(m.TRAIN_CLIP_RATIO),
    "frac_reward_zero_std": Gauge(m.REWARD_ZERO_VARIANCE_RATIO),
}
"""What those log that make rollouts themselves."""

ASYNCHRONOUS: Gauges = {
    **_ROLLOUTS,
    "kl": kl(KlReference.OLD_POLICY),
    "rollout/turns_mean": Gauge(m.ENVIRONMENT_EPISODE_TURNS_MEAN),
    "sample/staleness_mean": Gauge(m.SAMPLE_STALENESS),
    "perf/mfu_fwd_bwd": Gauge(m.TRAIN_MFU, scale=0.01),  # in percent
}
"""What those log whose rollouts are made by a process beside them."""

NO_SCORES = frozenset(
    {"runtime", "samples_per_second", "steps_per_second", "num_tokens", "model_preparation_time"}
)
"""What an evaluation logs and is no result of it; `num_tokens` is that of training so far."""
