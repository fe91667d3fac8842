"""RLlib's results in our words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rlotel.integrations.tables import Gauge, Gauges, Timed, kl, loss, of, scalars
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import CheckpointOperation, KlReference, LossType, PhaseName, Role, SampleKind
from rlotel.words import CHECKPOINT, SAMPLE, SYNC, TRAIN

GENERATE = Timed(SAMPLE, kind=SampleKind.GENERATE)
WAIT = Timed(SAMPLE, kind=SampleKind.WAIT)
UPDATE = Timed(TRAIN)
WEIGHTS = Timed(SYNC)
CONNECTORS = Timed("connectors")
"""The running statistics of observation filters and the like go around; no weights."""
DATA = Timed(PhaseName.DATA.value)
EVALUATION = Timed(PhaseName.EVALUATE.value)
SAVE = Timed(CHECKPOINT, operation=CheckpointOperation.SAVE)
RESTORE = Timed(CHECKPOINT, operation=CheckpointOperation.RESTORE)
RECOVER = "recover"
"""Env runners that have failed are waited for, and those that are there again are given the present weights."""
NOTHING_DONE = 0.01
"""Seconds within which it is seen that none has failed."""

EPISODES: Gauges = {
    "episode_return_mean": Gauge(m.ENVIRONMENT_REWARD_MEAN),
    "episode_len_mean": Gauge(m.ENVIRONMENT_EPISODE_LENGTH_MEAN),
}
"""Of env runners. Both are over the latest episodes, by default 100, not those of the iteration alone."""

SCORES = tuple(f"episode_{what}_{how}" for what in ("return", "len") for how in ("mean", "min", "max"))
"""Of the env runners of an evaluation."""

LEARNER: Gauges = {
    "total_loss": loss(LossType.TOTAL),
    "policy_loss": loss(LossType.POLICY),
    "mean_pi_loss": loss(LossType.POLICY),  # IMPALA; its pi_loss is the sum over the batch
    "vf_loss": loss(LossType.VALUE),
    "mean_vf_loss": loss(LossType.VALUE),  # IMPALA, likewise
    "qf_loss": loss(LossType.VALUE),
    "mean_kl_loss": (loss(LossType.KL_DIVERGENCE), kl(KlReference.OLD_POLICY)),
    "entropy": Gauge(m.ENTROPY),
    "default_optimizer_learning_rate": Gauge(m.LEARNING_RATE),
    "policy_learning_rate": of(m.LEARNING_RATE, Role.ACTOR),
    "qf_learning_rate": of(m.LEARNING_RATE, Role.CRITIC),
    "gradients_default_optimizer_global_norm": Gauge(m.GRAD_NORM),
    "gradients_policy_global_norm": of(m.GRAD_NORM, Role.ACTOR),
    "gradients_qf_global_norm": of(m.GRAD_NORM, Role.CRITIC),
}
"""Of one module's learner. A key that comes later takes the place of an earlier one of the same gauge."""

UPDATES_BEHIND = "diff_num_grad_updates_vs_sampler_policy"
"""How many updates the policy that sampled is behind, the one that is being made included."""
ALL_MODULES = "__all_modules__"
ROWS_TRAINED = "num_module_steps_trained"


def part(result: object, *path: str) -> Mapping[str, Any]:
    """A part of a result, empty where it is not there."""
    for name in path:
        result = result.get(name) if isinstance(result, Mapping) else None
    return result if isinstance(result, Mapping) else {}


def total(values: object) -> float | None:
    """A count, or the sum of one for each module; None where there is none. NaN is what RLlib says then."""
    found = scalars(values if isinstance(values, Mapping) else {"": values})
    counts = [count for count in found.values() if count >= 0]
    return sum(counts) if counts else None


def trained(learners: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The results of the modules that were trained in the iteration; others' are from earlier ones."""
    return {
        name: found
        for name, found in learners.items()
        if name != ALL_MODULES and isinstance(found, Mapping) and total(found.get(ROWS_TRAINED))
    }


def of_module(module: str | None) -> Iterator[tuple[str, tuple[Gauge, ...]]]:
    """What is told of a module; where there are several it is its own role, if the metric has room for one."""
    for key, found in LEARNER.items():
        gauges = found if isinstance(found, tuple) else (found,)
        if module is not None:
            gauges = tuple(
                Gauge(gauge.metric, {**gauge.attributes, attr.ROLE.name: module}, gauge.scale)
                for gauge in gauges
                if attr.ROLE.name in {use.attribute.name for use in gauge.metric.attributes}
                and attr.ROLE.name not in gauge.attributes
            )
        yield key, gauges
