"""What AReaL's timers, log keys and trainers mean in our words: the tables.

Read from the sources of 0.5.0, 0.5.3, 1.0.0, 1.0.4 and of May 2026. In all of them every loop is timed by
`stats_tracker.record_timing` and ends an iteration with `StatsLogger.commit`.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlotel.integrations.tables import Gauge, Gauges, Timed, kl, loss, of
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import CheckpointOperation, KlReference, LossType, Role, SampleKind
from rlotel.words import CHECKPOINT, SAMPLE, SYNC, TRAIN

_ACTOR, _CRITIC, _TEACHER = Role.ACTOR.value, Role.CRITIC.value, "teacher"

OFFLOAD = "offload"

TIMERS: Mapping[str, Timed] = {
    # Rollouts are always made beside the trainer, which hands in prompts and waits for what is ready.
    "rollout": Timed(SAMPLE, kind=SampleKind.WAIT),
    "bcast": Timed("data"),  # 0.5
    "to_device": Timed("data"),  # 0.5
    "load_bcast": Timed("data"),
    "clear_batches": Timed("data"),
    "critic_values": Timed("value", _CRITIC),
    "ref_logp": Timed("ref_logprob", Role.REFERENCE.value),
    "teacher_logp": Timed("logprob", _TEACHER),
    "recompute_logp": Timed("logprob", _ACTOR),
    "compute_advantage": Timed("advantage"),
    "train_step": Timed(TRAIN, _ACTOR),
    "critic_train_step": Timed(TRAIN, _CRITIC),
    "update_weights": Timed(SYNC),
    # Colocated engines make room for each other.
    "rollout_pause": Timed(OFFLOAD),
    "rollout_pause_generation": Timed(OFFLOAD),
    "rollout_offload": Timed(OFFLOAD),
    "rollout_onload": Timed(OFFLOAD),
    "rollout_continue_generation": Timed(OFFLOAD),
    "rollout_resume": Timed(OFFLOAD),
}
"""Timers, by name. What is after `_onload` and `_offload` of a model's role is `OFFLOAD` too."""

OF_ROLES = ("_onload", "_offload")

SAVED = Timed(CHECKPOINT, operation=CheckpointOperation.SAVE)
RESTORED = Timed(CHECKPOINT, operation=CheckpointOperation.RESTORE)
EXPORTED = Timed(CHECKPOINT, operation=CheckpointOperation.SAVE, durable=False)
"""Weights without an optimizer, while there are checkpoints to come back to, or that are still being written."""

WEIGHTS = "save"
"""The timer around weights being saved as a model of Hugging Face's."""

POLICY = "default"
"""The name under which the policy's weights are saved."""

OCCASIONAL: Mapping[str, Timed] = {
    WEIGHTS: SAVED,
    "checkpoint_for_recover": SAVED,
    "eval": Timed("evaluate"),
}
"""Timers of what each iteration asks for, and which is only done where it is due: else they are about nothing."""

TRAINERS = (
    "areal.trainer.rl_trainer:PPOTrainer",
    "areal.trainer.sft_trainer:SFTTrainer",
    "areal.trainer.dpo_trainer:DPOTrainer",
    "areal.trainer.rw_trainer:RWTrainer",
    "areal.experimental.trainer.rl:PPOTrainer",  # 0.5
    "areal.experimental.trainer.sft:SFTTrainer",  # 0.5
)

EXECUTORS = ("areal.infra.workflow_executor", "areal.core.workflow_executor")
"""Modules of what runs workflows; the second to 0.5."""
CONTROLLERS = ("areal.infra.controller.rollout_controller", "areal.controller.rollout_controller")
"""Modules of what asks rollout workers; the second to 0.5."""
CONTEXTS = ("areal.infra.workflow_context", "areal.core.workflow_context")
"""Modules that tell a workflow whether it is for an evaluation."""

UPDATES: Mapping[str, Timed] = {
    "areal.trainer.ppo.actor:PPOActor.ppo_update": Timed(TRAIN, _ACTOR),
    "areal.trainer.ppo.critic:PPOCritic.ppo_update": Timed(TRAIN, _CRITIC),
    "areal.trainer.ppo.critic:PPOCritic.compute_values": Timed("value", _CRITIC),
    "areal.trainer.sft.lm_engine:LMEngine.train_lm": Timed(TRAIN, _ACTOR),
    "areal.trainer.rw.rw_engine:RWEngine.train_rw": Timed(TRAIN, _ACTOR),
    "areal.trainer.dpo.dpo_engine:DPOEngine.train_dpo": Timed(TRAIN, _ACTOR),
}
"""What workers do for those models whose versions they know. A reference model has none."""

GPU_ROLES: Mapping[str, Role] = {
    "areal.engine.fsdp_engine:FSDPEngine.initialize": Role.TRAINER,
    "areal.engine.megatron_engine:MegatronEngine.initialize": Role.TRAINER,
    "areal.infra.remote_inf_engine:RemoteInfEngine.launch_server": Role.ROLLOUT,
    "areal.core.remote_inf_engine:RemoteInfEngine.launch_server": Role.ROLLOUT,  # 0.5
}
"""What says that its process uses its GPUs, and for what."""

ACTOR = "ppo_actor/"
CRITIC = "ppo_critic/"
_UPDATE = f"{ACTOR}update/"
SUPERVISED = ("sft/", "rw/", "dpo/")
"""What the keys of trainers without rollouts begin with."""

GAUGES: Gauges = {
    # As the rewards came with the rollouts; final_reward is what is left of it for each token.
    f"{ACTOR}task_reward/avg": Gauge(m.ENVIRONMENT_REWARD_MEAN),
    "rollout/num_turns": Gauge(m.ENVIRONMENT_EPISODE_TURNS_MEAN),
    f"{_UPDATE}version_stats/sample_staleness_theta_avg": Gauge(m.SAMPLE_STALENESS),
    f"{_UPDATE}actor_loss/avg": loss(LossType.POLICY),
    f"{CRITIC}critic_loss/avg": loss(LossType.VALUE),
    f"{_UPDATE}entropy/avg": Gauge(m.ENTROPY),
    # The log of how much likelier tokens have become, whose mean is minus the divergence.
    f"{_UPDATE}approx_kl/avg": kl(KlReference.OLD_POLICY, scale=-1.0),
    f"{_UPDATE}compute_logp/kl_div_direct/avg": kl(KlReference.ROLLOUT),
    f"{_UPDATE}grad_norm": of(m.GRAD_NORM, Role.ACTOR),
    f"{_UPDATE}lr": of(m.LEARNING_RATE, Role.ACTOR),
    f"{_UPDATE}clip_ratio/avg": of(m.TRAIN_CLIP_RATIO, Role.ACTOR),
    f"{CRITIC}grad_norm": of(m.GRAD_NORM, Role.CRITIC),
    f"{CRITIC}lr": of(m.LEARNING_RATE, Role.CRITIC),
    f"{CRITIC}clip_ratio/avg": of(m.TRAIN_CLIP_RATIO, Role.CRITIC),
    **{f"{scope}loss/avg": loss(LossType.TOTAL) for scope in SUPERVISED},
    **{f"{scope}grad_norm": of(m.GRAD_NORM, Role.ACTOR) for scope in SUPERVISED},
    **{f"{scope}lr": of(m.LEARNING_RATE, Role.ACTOR) for scope in SUPERVISED},
}

PENALTY = f"{ACTOR}kl_rewards/avg"
"""The KL divergence from the reference model, times minus `actor.kl_ctl`."""

OF_ROLLOUTS = "eval-rollout/"
EVALUATIONS = ("sft-eval/", "rw-eval/", "dpo-eval/")
"""What keys of an evaluation begin with; they are logged beside those of training."""
