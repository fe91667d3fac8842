"""SkyRL's timers, forward passes and log keys, and what each of them is in our words."""

from __future__ import annotations

from collections.abc import Mapping

from rlotel.integrations.tables import Gauge, Gauges, Timed, kl, loss, of
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import CheckpointOperation, KlReference, LossType, Role, SampleKind
from rlotel.words import CHECKPOINT, REWARD, SAMPLE, SYNC, TRAIN

PACKAGES = ("skyrl.train", "skyrl_train")
"""Where the trainers are: from 0.1 on, and before, when the package was called skyrl_train."""

ASYNCHRONOUS = "FullyAsyncRayPPOTrainer"
"""The trainer beside which rollouts are made, by tasks of their own."""

STEP = "step"
"""The timer around one iteration, or with dynamic sampling around each attempt at one."""

LOGPROB = "logprob"
ACTOR = Role.ACTOR.value
CRITIC = Role.CRITIC.value
REFERENCE = Role.REFERENCE.value

GENERATE = Timed(SAMPLE, kind=SampleKind.GENERATE)
"""What a generator's `generate` is where no timer is around it: the fully asynchronous trainer's rollouts."""

TIMERS: Mapping[str, Timed] = {
    "generate": GENERATE,
    "wait_for_generation_buffer": Timed(SAMPLE, kind=SampleKind.WAIT),
    "postprocess_generator_output": Timed("data"),
    "convert_to_training_input": Timed("data"),
    # Old log-probabilities, with those of the reference and the critic's values inside. It computes no reward.
    "fwd_logprobs_values_reward": Timed(LOGPROB),
    "apply_reward_kl_penalty": Timed("advantage", same=False),  # the two are one phase
    "compute_advantages_and_returns": Timed("advantage", same=False),
    "dump_data_batch": Timed("dump"),
    "critic_train": Timed(TRAIN, CRITIC),
    "policy_train": Timed(TRAIN, ACTOR),
    "policy_critic_overlap_train": Timed(TRAIN),  # to skyrl_train 0.3
    "update_ref_with_policy": Timed("other"),
    "sync_weights": Timed(SYNC),
    "sync_weights_to_inference_engines": Timed(SYNC),  # before the first iteration, fully asynchronous
    "offload_policy_model_to_cpu": Timed("offload"),  # to skyrl_train 0.3
    "save_checkpoints": Timed(CHECKPOINT, operation=CheckpointOperation.SAVE),
    # An export that no run comes back to.
    "save_hf_model": Timed(CHECKPOINT, operation=CheckpointOperation.SAVE, durable=False, same=False),
    "eval": Timed("evaluate"),
}
"""`train_critic_and_policy` and `run_training` are around some of these; other timers say no more."""

PASSES: Mapping[str, Timed] = {
    "critic": Timed("value", CRITIC),
    "ref": Timed("ref_logprob", REFERENCE),
    "policy": Timed(LOGPROB),
}
"""What a forward pass is, by SkyRL's name of the model."""

ROLES: Mapping[str, str] = {"policy": ACTOR, "critic": CRITIC}
"""Which model is updated."""

SCORING = Timed(REWARD)
"""An environment's last step, which judges the rollout."""
TOOL = Timed("tool")
"""Any other: it does what the policy asked for, and answers."""

TOLD = "trainer/global_step"
"""A log call that has this tells of an iteration; others tell of an evaluation, or of times alone."""
SCORES = "eval/"
"""What scores of an evaluation begin with."""
ROLLOUTS_OF_EVALUATION = ("eval/all/generate/", "eval/all/environment/")
"""Not scores: how rollouts went. Those of environments are summed over batches, so that they say nothing."""

LENGTH = "generate/avg_num_tokens"
"""Mean tokens of a row: of an episode, unless each of its turns is a row."""

BY_POLICY = "generate/avg_assistant_tokens"
"""Mean tokens of a row that the policy generated; the others of its response are what an environment answered."""

GAUGES: Gauges = {
    "reward/avg_raw_reward": Gauge(m.ENVIRONMENT_REWARD_MEAN),
    LENGTH: Gauge(m.ENVIRONMENT_EPISODE_LENGTH_MEAN),
    "async/staleness_mean": Gauge(m.SAMPLE_STALENESS),
    "policy/policy_loss": loss(LossType.POLICY),
    "policy/final_loss": loss(LossType.TOTAL),
    "critic/critic_loss": loss(LossType.VALUE),
    # Of the loss, which Megatron's workers log as 0 where there is none of it.
    "policy/policy_kl": (
        kl(KlReference.REFERENCE, zero_is_unknown=True),
        Gauge(m.TRAIN_LOSS, {attr.LOSS_TYPE.name: LossType.KL_DIVERGENCE.value}, zero_is_unknown=True),
    ),
    "loss/avg_kl": kl(KlReference.REFERENCE),  # of the reward
    "policy/policy_entropy": Gauge(m.ENTROPY),
    "policy/grad_norm": of(m.GRAD_NORM, Role.ACTOR),
    "critic/grad_norm": of(m.GRAD_NORM, Role.CRITIC),
    "policy/raw_grad_norm": of(m.GRAD_NORM, Role.ACTOR),  # to skyrl_train 0.3
    "critic/raw_grad_norm": of(m.GRAD_NORM, Role.CRITIC),
    "policy/policy_lr": of(m.LEARNING_RATE, Role.ACTOR),
    "critic/critic_lr": of(m.LEARNING_RATE, Role.CRITIC),
    "policy/loss_metrics/clip_ratio": of(m.TRAIN_CLIP_RATIO, Role.ACTOR),
    "policy/ppo_clip_ratio": of(m.TRAIN_CLIP_RATIO, Role.ACTOR),  # before skyrl 0.1
    "critic/values_clipfrac": of(m.TRAIN_CLIP_RATIO, Role.CRITIC),
}
