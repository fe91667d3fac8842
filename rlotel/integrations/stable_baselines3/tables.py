"""What SB3's functions and logged values mean in our words."""

from __future__ import annotations

from rlotel.integrations.tables import Gauge, Gauges, Timed, kl, loss
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import CheckpointOperation, KlReference, LossType, PhaseName, SampleKind
from rlotel.words import CHECKPOINT, SAMPLE, TRAIN

ROLLOUT = Timed(SAMPLE, kind=SampleKind.GENERATE)
UPDATE = Timed(TRAIN)
EVALUATION = Timed(PhaseName.EVALUATE.value)
SAVE = Timed(CHECKPOINT, operation=CheckpointOperation.SAVE)
LOAD = Timed(CHECKPOINT, operation=CheckpointOperation.RESTORE)
SAVE_BUFFER = Timed(CHECKPOINT, operation=CheckpointOperation.SAVE, durable=False)
LOAD_BUFFER = Timed(CHECKPOINT, operation=CheckpointOperation.RESTORE)
"""A replay buffer is a part of a checkpoint, and mostly the larger one."""

TRAINED: Gauges = {
    "train/policy_gradient_loss": loss(LossType.POLICY),  # PPO
    "train/policy_loss": loss(LossType.POLICY),  # A2C
    "train/actor_loss": loss(LossType.POLICY),
    "train/value_loss": loss(LossType.VALUE),
    "train/critic_loss": loss(LossType.VALUE),
    "train/loss": loss(LossType.TOTAL),  # PPO's is that of the last mini-batch
    "train/entropy_loss": (Gauge(m.ENTROPY, scale=-1.0), loss(LossType.ENTROPY)),
    "train/approx_kl": kl(KlReference.OLD_POLICY),
    "train/clip_fraction": Gauge(m.TRAIN_CLIP_RATIO),
    "train/learning_rate": Gauge(m.LEARNING_RATE),
}
"""What `train` records."""

EPISODES: Gauges = {
    "returns": Gauge(m.ENVIRONMENT_REWARD_MEAN),
    "lengths": Gauge(m.ENVIRONMENT_EPISODE_LENGTH_MEAN),
}
"""What SB3 logs as rollout/ep_rew_mean and rollout/ep_len_mean."""

EVALUATED = "eval/"
"""What the scores of an evaluation begin with."""
