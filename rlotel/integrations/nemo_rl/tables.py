"""What NeMo RL's timers, log keys and training functions mean in our words: the tables.

Read from the sources of 0.4.0, 0.5.0, 0.6.0, 0.7.0 and of August 2026. In all of them every loop is timed by a
`Timer`, logs through a `Logger` and ends an iteration with `log_metrics(…, prefix="timing/train")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlotel.integrations import tables
from rlotel.integrations.tables import Timed
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import CheckpointOperation, KlReference, LossType, Role, SampleKind
from rlotel.semconv.types import Metric
from rlotel.words import CHECKPOINT, SAMPLE, SYNC, TRAIN

STEP = "total_step_time"
"""The timer around one iteration, validation and checkpoints included. It is entered again where an iteration has
to go on sampling (DAPO) or waiting (an empty replay buffer)."""

TEACHER = "teacher"
"""The role of the model that a distillation learns from."""

TIMERS: Mapping[str, Timed] = {
    "data_processing": Timed("data"),
    "dynamic_sampling": Timed("data"),
    # Engines wake up and the trainer makes room. The weights that move meanwhile are a sync phase inside of it.
    "prepare_for_generation/total": Timed("offload"),
    "prepare_for_generation": Timed("offload"),  # distillation
    "generation": Timed(SAMPLE, kind=SampleKind.GENERATE),
    # Asynchronous: rollouts are made elsewhere.
    "exposed_generation": Timed(SAMPLE, kind=SampleKind.WAIT),
    "init/total": Timed(SAMPLE, kind=SampleKind.WAIT),
    # Baselines from rewards that were computed while rollouts were made; to 0.5 the advantages, too.
    "reward_calculation": Timed("advantage"),
    "advantage_calculation": Timed("advantage"),
    "logprob_inference_prep": Timed("offload"),
    "policy_and_reference_logprobs": Timed("logprob"),
    "teacher_logprob_inference_prep": Timed("offload"),
    "teacher_logprob_inference": Timed("logprob", TEACHER),
    "teacher_forward": Timed("logprob", TEACHER),
    "value_inference": Timed("value", Role.CRITIC.value),
    "value_training_prep": Timed("offload"),
    "value_training": Timed(TRAIN, Role.CRITIC.value),
    "training_prep": Timed("offload"),
    "policy_training": Timed(TRAIN, Role.ACTOR.value),
    "recompute_kv_scales": Timed("other"),
    "policy_offload_after_refit": Timed("offload"),
    "offload_before_refit": Timed("offload"),
    "weight_sync": Timed(SYNC),
    "checkpointing": Timed(CHECKPOINT, operation=CheckpointOperation.SAVE),
    "total_validation_time": Timed("evaluate"),
    "validation_total": Timed("evaluate"),
}
"""Timers that are inside one of these and say no more (`policy_training/sharding_data`) are left out, and so are
`idle/…`, which are around some of these or around nothing."""

ANYWHERE = frozenset({"init/total", "total_validation_time", "validation_total"})
"""Timers that count outside of an iteration, too, and on a `Timer` that measures no iterations."""


@dataclass(frozen=True)
class Training:
    """One of NeMo RL's training functions."""

    algorithm: str
    state: str
    """Parameter that holds where a resumed run goes on."""
    step: str = "total_steps"
    """The iterations that were done, in that state."""


_GRPO = "nemo_rl.algorithms.grpo:"
_PPO = "nemo_rl.algorithms.ppo:"

TRAININGS: Mapping[str, Training] = {
    _GRPO + "grpo_train": Training("GRPO", "grpo_save_state"),
    _GRPO + "async_grpo_train": Training("GRPO", "grpo_save_state", "current_step"),
    "nemo_rl.algorithms.grpo_sync:grpo_train_sync": Training("GRPO", "grpo_save_state"),  # from 0.7
    _PPO + "ppo_train": Training("PPO", "ppo_save_state"),  # from 0.7
    _PPO + "async_ppo_train": Training("PPO", "ppo_save_state", "current_step"),  # after 0.7
    "nemo_rl.algorithms.dpo:dpo_train": Training("DPO", "dpo_save_state"),
    "nemo_rl.algorithms.sft:sft_train": Training("SFT", "sft_save_state"),
    "nemo_rl.algorithms.rm:rm_train": Training("RM", "rm_save_state"),
    "nemo_rl.algorithms.distillation:distillation_train": Training("distillation", "distillation_save_state"),
    "nemo_rl.algorithms.xtoken_off_policy_distillation:xtoken_off_policy_distillation_train": Training(
        "distillation", "off_policy_distillation_state"
    ),  # from 0.7
}

CHECK_OF_CONTROLLER = "nemo_rl.algorithms.single_controller_utils.config:validate_single_controller_config"
RESUME_OF_CONTROLLER = "nemo_rl.algorithms.async_utils.staleness_sampler:BaseSampler.set_dispatch_index"
"""After 0.7: what the single controller calls that can be watched; it is no function that could be."""

POLICIES = ("policy", "student_policy", "value_model")
"""Parameters of these functions that hold a model that is trained."""

SYNCHRONIZERS: tuple[str, ...] = tuple(
    f"nemo_rl.weight_sync.{module}_weight_synchronizer:{kind}WeightSynchronizer.sync_weights"
    for module, kind in (
        ("checkpoint_engine", "CheckpointEngine"),
        ("collective", "Collective"),
        ("http", "HTTP"),
        ("ipc", "IPC"),
        ("megatron", "Megatron"),
        ("nccl_reshard", "NcclReshard"),
        ("vllm_remote_sparse", "VllmRemoteSparse"),
    )
)
"""From 0.7: what moves weights where `refit_policy_generation` is not called."""

ROLLOUTS = (
    "run_multi_turn_rollout",
    "run_async_multi_turn_rollout",
    "run_async_multi_turn_rollout_groups",
    "run_async_nemo_gym_rollout",
    "run_nemo_gym_rollout_sync",
)
"""Functions of `nemo_rl.experience.rollouts`; some call each other."""


@dataclass(frozen=True)
class Gauge(tables.Gauge):
    """Where a logged value goes."""

    summed: bool = False
    """Whether NeMo RL adds up the means of the optimizer steps of an iteration."""
    native: bool = False
    """Whether NeMo RL's own telemetry reports it under the same name."""


def _of(metric: Metric, role: Role, *, native: bool = False) -> Gauge:
    return Gauge(metric, {attr.ROLE.name: role.value}, native=native)


def _loss(kind: LossType) -> Gauge:
    return Gauge(m.TRAIN_LOSS, {attr.LOSS_TYPE.name: kind.value})


def _kl(reference: KlReference, *, zero_is_unknown: bool = False, native: bool = False) -> Gauge:
    attributes = {attr.KL_REFERENCE.name: reference.value}
    return Gauge(m.KL_DIVERGENCE, attributes, zero_is_unknown=zero_is_unknown, summed=True, native=native)


LOSS = "loss"
"""Key of the whole loss. It is in every log of an iteration's results, and in no earlier one of its rollouts."""

TRAIN_GAUGES: Mapping[str, Gauge] = {
    LOSS: _loss(LossType.TOTAL),
    "critic/loss": _loss(LossType.VALUE),
    # The divergence, not the penalty. 0 where the penalty is off, since then it is not computed.
    "kl_penalty": _kl(KlReference.REFERENCE, zero_is_unknown=True, native=True),
    "gen_kl_error": _kl(KlReference.ROLLOUT),
    "approx_entropy": Gauge(m.ENTROPY, summed=True, native=True),
    "grad_norm": _of(m.GRAD_NORM, Role.ACTOR, native=True),
    "critic/grad_norm": _of(m.GRAD_NORM, Role.CRITIC),
    "lr": _of(m.LEARNING_RATE, Role.ACTOR, native=True),
    "critic/lr": _of(m.LEARNING_RATE, Role.CRITIC),
    # Of all rollouts, also of those that dynamic sampling leaves out.
    "reward": Gauge(m.ENVIRONMENT_REWARD_MEAN),
    "mean_gen_tokens_per_sample": Gauge(m.ENVIRONMENT_EPISODE_LENGTH_MEAN),
    "avg_turns_per_sample": Gauge(m.ENVIRONMENT_EPISODE_TURNS_MEAN),
    "turns_per_sample/mean": Gauge(m.ENVIRONMENT_EPISODE_TURNS_MEAN),  # NeMo Gym
    "truncation_rate": Gauge(m.SAMPLE_TRUNCATED_RATIO),
    "avg_trajectory_age": Gauge(m.SAMPLE_STALENESS),
    "train_fp_utilization": Gauge(m.TRAIN_MFU),  # SFT, DPO and distillation
}
"""With the prefix `train`."""

PERFORMANCE_GAUGES: Mapping[str, Gauge] = {"train_fp_utilization": Gauge(m.TRAIN_MFU)}
"""With the prefix `performance`."""
