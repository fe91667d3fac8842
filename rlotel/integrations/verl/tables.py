"""What verl's timers, log keys and settings mean in our words: the tables, with the versions where they differ.

Read from the sources of 0.5.0, 0.6.1, 0.7.0, 0.7.1, 0.8.0, 0.9.0 and 0.9.1, in all of which the timers go through
one function and the metrics through one method.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlotel.integrations.tables import Gauge, Gauges, Timed, kl, loss, of
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import CheckpointOperation, KlReference, LossType, Role, SampleKind
from rlotel.words import CHECKPOINT, REWARD, SAMPLE, SYNC, TRAIN

STEP = "step"
"""The timer around one iteration. Validation is inside of it in 0.5 only, checkpoints in all but 0.6 and 0.7.0."""

TIMERS: Mapping[str, Timed] = {
    "gen": Timed(SAMPLE),
    "gen_max": Timed(SAMPLE, kind=SampleKind.GENERATE),  # the greedy baseline of REMAX, to 0.8
    # One-step-off: the rollouts of the next iteration, beside the update of this one.
    "generate_async": Timed(SAMPLE, kind=SampleKind.GENERATE),
    "wait_prev_gen": Timed(SAMPLE, kind=SampleKind.WAIT),  # one-step-off while it was a recipe, to 0.7.0
    "wait_for_enough_samples": Timed(SAMPLE, kind=SampleKind.WAIT),
    "switch_wait": Timed(SAMPLE, kind=SampleKind.WAIT),  # 0.9, trainer GPUs are lent to the rollouts meanwhile
    # To 0.6 the scoring. From 0.7 on rollouts are scored as they are made, and it measures a look-up, unless a
    # reward model shares the trainer's GPUs.
    "reward": Timed(REWARD, same=False),
    "old_log_prob": Timed("logprob", Role.ACTOR),
    "ref": Timed("ref_logprob", Role.REFERENCE),
    "values": Timed("value", Role.CRITIC),
    "adv": Timed("advantage"),
    "update_critic": Timed(TRAIN, Role.CRITIC),
    "update_actor": Timed(TRAIN, Role.ACTOR),
    # From 0.7.1 on; before, weights move as generation begins and are part of it. One-step-off has the first
    # inside the second, and fully-async writes the prefix into the name.
    "update_weights": Timed(SYNC),
    "sync_rollout_weights": Timed(SYNC),
    "timing_s/param_sync": Timed(SYNC),
    # 0.9's lending of the trainer's GPUs to the rollouts, and back.
    "switch_to_rollout": Timed("offload"),
    "switch_to_trainer": Timed("offload"),
    "save_checkpoint": Timed(CHECKPOINT, operation=CheckpointOperation.SAVE),
    "testing": Timed("evaluate"),
    "rollouter/validate_time": Timed("evaluate"),
    "dump_rollout_generations": Timed("dump"),
}
"""Where a sample phase has no kind, it depends on the trainer, see `WAITS_IN`."""

WAITS_IN = (
    "verl.trainer.ppo.v1.",
    "verl.trainer.main_ppo_sync",  # 0.8, from which V1 came
    "verl.experimental.one_step_off_policy.",
    "verl.experimental.fully_async_policy.",
    "recipe.one_step_off_policy.",
    "recipe.fully_async_policy.",
)
"""Modules in which `gen` is the wait for rollouts that others make; elsewhere rollouts are made in it."""

NORMAL_ENDS = frozenset({"TrainingStopException"})
"""Exceptions with which a trainer says that training is over."""

TOLD = ("timing_s/step", "perf/time_per_step")
"""A log call that has one of these tells of an iteration; others tell of a validation or of the rollouter."""
VALIDATION = "val-core/"
"""What validation scores begin with. `val-aux/` has every variable in every statistic, and is left out."""
ALL_ABORTED = "response/aborted_ratio"
"""At 1 nothing came back, and verl writes NaN where there is nothing to take a mean of."""


GAUGES: Gauges = {
    # The score as the environment gave it; critic/rewards/mean has the KL penalty in it.
    "critic/score/mean": Gauge(m.ENVIRONMENT_REWARD_MEAN),
    "response_length/mean": Gauge(m.ENVIRONMENT_EPISODE_LENGTH_MEAN),
    "num_turns/mean": Gauge(m.ENVIRONMENT_EPISODE_TURNS_MEAN),
    "response_length/clip_ratio": Gauge(m.SAMPLE_TRUNCATED_RATIO),
    ALL_ABORTED: Gauge(m.SAMPLE_ABORTED_RATIO),
    "training/off_policy/trajectory_staleness/mean": Gauge(m.SAMPLE_STALENESS),  # V1
    "actor/pg_loss": loss(LossType.POLICY),
    "critic/vf_loss": loss(LossType.VALUE),
    "actor/entropy_loss": loss(LossType.ENTROPY),
    "actor/loss": loss(LossType.TOTAL),  # from 0.8
    "actor/kl_loss": (loss(LossType.KL_DIVERGENCE), kl(KlReference.REFERENCE)),
    "actor/reward_kl_penalty": kl(KlReference.REFERENCE),
    "actor/ppo_kl": kl(KlReference.OLD_POLICY),
    "rollout_corr/kl": kl(KlReference.ROLLOUT),
    "actor/entropy": Gauge(m.ENTROPY),
    "actor/grad_norm": of(m.GRAD_NORM, Role.ACTOR),
    "critic/grad_norm": of(m.GRAD_NORM, Role.CRITIC),
    "actor/lr": of(m.LEARNING_RATE, Role.ACTOR),
    "critic/lr": of(m.LEARNING_RATE, Role.CRITIC),
    "actor/pg_clipfrac": of(m.TRAIN_CLIP_RATIO, Role.ACTOR),
    "critic/vf_clipfrac": of(m.TRAIN_CLIP_RATIO, Role.CRITIC),
}

MFU: Mapping[str, Gauge] = {
    "perf/mfu/actor": of(m.TRAIN_MFU, Role.ACTOR, zero_is_unknown=True),
    "perf/mfu/critic": of(m.TRAIN_MFU, Role.CRITIC, zero_is_unknown=True),
}
"""verl's own MFU, for where ours can't be told. It is 0 for a GPU or model that verl does not know."""
