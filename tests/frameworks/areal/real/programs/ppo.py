"""AReaL's real PPOTrainer, made and run in the process of its controller, on a CPU.

Real: the trainer from its constructor on, the actor's and critic's losses, workflows and their executor, rewards,
statistics, recovery. Made up: the model's engine and the server, see `made_up.py`.

In all ranks that torchrun starts if it does, with AREAL_SPMD_MODE. By ITERATIONS, ALGORITHM (grpo or ppo), REWARD
(right or wrong), TURNS, RECOVER (on or off, in FILES) and WORKERS: how many other processes make the rollouts.
"""

import os
import time
from pathlib import Path
from typing import Any

import made_up  # type: ignore[import-not-found]
import recording  # type: ignore[import-not-found]
import torch.distributed as dist
from areal.api.cli_args import (
    EvaluatorConfig,
    InferenceEngineConfig,
    PPOActorConfig,
    PPOConfig,
    PPOCriticConfig,
    RecoverConfig,
    SaverConfig,
    SchedulingSpec,
    StatsLoggerConfig,
    TrainDatasetConfig,
    ValidDatasetConfig,
)
from areal.infra.controller.rollout_controller import RolloutController
from areal.trainer.rl_trainer import PPOTrainer
from areal.utils.stats_logger import StatsLogger

import rlotel

WORKERS = int(os.environ.get("WORKERS", "0"))
ITERATIONS = int(os.environ.get("ITERATIONS", "3"))
STEPS_PER_EPOCH = 4
PROMPTS, EACH = 2, 2
FOLDER = Path(os.environ["RUN_FOLDER"])
FILES = os.environ.get("FILES", str(FOLDER / "files"))
NAMES: dict[str, Any] = {"experiment_name": "counting", "trial_name": "one", "fileroot": FILES}
TURNS = int(os.environ.get("TURNS", "1"))


class Trainer(PPOTrainer):  # type: ignore[misc]
    """The engines are made up, and made here."""

    def _init_scheduler(self) -> Any:
        return super()._init_scheduler() if WORKERS else None

    def _create_train_engine(self, actor_config: PPOActorConfig, alloc: Any) -> made_up.Actor:
        return made_up.Actor(actor_config)

    def _create_critic(self, critic_config: PPOCriticConfig, alloc: Any) -> made_up.Critic:
        return made_up.Critic(critic_config)

    def _init_rollout(self, rollout_config: Any, is_eval: bool = False, lora_path: Any = None) -> Any:
        if is_eval and WORKERS:
            return None  # that would be as many processes more
        if not WORKERS:
            engine = made_up.Rollouts(rollout_config)
            engine.initialize()
            return engine
        controller = RolloutController(made_up.Rollouts, rollout_config, self.scheduler)
        controller.initialize(role="rollout", server_args={})
        return controller


def configuration() -> PPOConfig:
    """Two rollouts for each of two prompts; weights are saved every second step, scores told every second."""
    words = made_up.tokenizer(FOLDER / "counting-0.1B")
    kl_ctl = 0.1 if os.environ.get("ALGORITHM") == "ppo" else 0.0
    model = {
        "path": words,
        "backend": "fsdp:d4",
        "ppo_n_minibatches": 2,
        **{k: NAMES[k] for k in NAMES if k[0] != "f"},
    }
    config = PPOConfig(
        experiment_name="counting",
        trial_name="one",
        total_train_epochs=-(-ITERATIONS // STEPS_PER_EPOCH),
        total_train_steps=ITERATIONS,
        tokenizer_path=words,
        train_dataset=TrainDatasetConfig(path="/data/gsm8k", type="rl", batch_size=PROMPTS, num_workers=0),
        valid_dataset=ValidDatasetConfig(path="/data/gsm8k", type="rl", batch_size=PROMPTS, num_workers=0),
        saver=SaverConfig(**NAMES, freq_steps=2),
        recover=RecoverConfig(**NAMES, mode=os.environ.get("RECOVER", "off"), freq_steps=2),
        evaluator=EvaluatorConfig(**NAMES, freq_steps=2),
        stats_logger=StatsLoggerConfig(**NAMES),
        actor=PPOActorConfig(
            **model, kl_ctl=kl_ctl, use_decoupled_loss=bool(kl_ctl), recompute_logprob=bool(kl_ctl)
        ),
        ref=PPOActorConfig(**model) if kl_ctl else None,
        critic=PPOCriticConfig(**model) if kl_ctl else None,
        rollout=InferenceEngineConfig(
            experiment_name="counting",
            trial_name="one",
            backend=f"sglang:d{WORKERS}" if WORKERS else "sglang:d2t2",
            scheduling_spec=(SchedulingSpec(cpu=1, mem=1, gpu=0, cmd="python -m areal.infra.rpc.rpc_server"),),
            max_concurrent_rollouts=8,
            consumer_batch_size=PROMPTS,
            max_head_offpolicyness=1,
        ),
    )
    config.gconfig.n_samples = EACH
    config.cluster.fileroot = NAMES["fileroot"]
    (FOLDER / "names").mkdir(exist_ok=True)
    config.cluster.name_resolve.nfs_record_root = str(FOLDER / "names")
    config.scheduler.type = "local"
    return config


def right(prompt: str, completions: str, prompt_ids: list[int], completion_ids: list[int], **_: Any) -> float:
    """A reward for short answers."""
    return float(len(completion_ids) <= 4)


def wrong(prompt: str, completions: str, prompt_ids: list[int], completion_ids: list[int], **_: Any) -> float:
    """One that fails for every answer of three tokens."""
    if len(completion_ids) == 3:
        raise ValueError("no answer in it")
    return 1.0


class Logged(StatsLogger):  # type: ignore[misc]
    """AReaL's logger, that also writes down what it was given."""

    def commit(self, epoch: int, step: int, global_step: int, data: dict[str, float]) -> None:
        if made_up.Engine.data_parallel_rank == 0:
            made_up.note("logged.jsonl", epoch=epoch, step=step, global_step=global_step, data=data)
        super().commit(epoch, step, global_step, data)


def main() -> None:
    """Train."""
    rows = [{"messages": [{"role": "user", "content": f"w{n} w{n + 1} w{n + 2}"}]} for n in range(8)]
    config = configuration()
    reward = os.environ.get("REWARD", "right")
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    with Trainer(config, train_dataset=rows, valid_dataset=rows[:2]) as trainer:
        trainer.stats_logger.__class__ = Logged
        workflow = "areal.workflow.rlvr.RLVRWorkflow"
        known: dict[str, Any] = {"reward_fn": f"ppo.{reward}", "tokenizer": config.tokenizer_path}
        if TURNS > 1:
            workflow = "areal.workflow.multi_turn.MultiTurnWorkflow"
            known = {"reward_fn": globals()[reward], "tokenizer": trainer.tokenizer, "max_turns": TURNS}
            known["turn_discount"] = 0.9
        started = time.perf_counter()
        trainer.train(
            workflow=workflow,
            workflow_kwargs={**known, "gconfig": config.gconfig},
            eval_workflow=workflow,
            eval_workflow_kwargs={**known, "gconfig": config.eval_gconfig},
        )
        print(f"seconds={time.perf_counter() - started:.4f}", flush=True)


if __name__ == "__main__":
    rlotel.instrument()
    if os.environ.get("RECORD"):
        recording.start()
    main()
    if os.environ.get("RECORD"):
        recording.write(Path(os.environ["RECORD"]))
