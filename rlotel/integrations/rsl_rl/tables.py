"""What rsl_rl's functions and results mean in our words."""

from __future__ import annotations

from rlotel.integrations.tables import Gauge, Gauges, Timed, loss
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import CheckpointOperation, LossType, SampleKind
from rlotel.words import CHECKPOINT, SAMPLE

ROLLOUT = Timed(SAMPLE, kind=SampleKind.GENERATE)
SAVE = Timed(CHECKPOINT, operation=CheckpointOperation.SAVE)
RESTORE = Timed(CHECKPOINT, operation=CheckpointOperation.RESTORE)

UPDATE: Gauges = {
    "surrogate": loss(LossType.POLICY),
    "value": loss(LossType.VALUE),
    "value_function": loss(LossType.VALUE),  # before 4.0
    "behavior": loss(LossType.TOTAL),  # of a distillation it is all
    "entropy": Gauge(m.ENTROPY),
}
"""What an update returns: means over its optimizer steps. Those of RND and of symmetries have no name here."""
LEARNING: Gauges = {"learning_rate": Gauge(m.LEARNING_RATE)}
EPISODES: Gauges = {
    "returns": Gauge(m.ENVIRONMENT_REWARD_MEAN),
    "lengths": Gauge(m.ENVIRONMENT_EPISODE_LENGTH_MEAN),
}
