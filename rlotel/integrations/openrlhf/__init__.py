"""OpenRLHF 0.9.10 to 0.11: its trainers, synchronous and asynchronous, its rollout engines and its workers.

All of them are Ray actors, and the trainers' own classes are sent to them by value: what is watched is what they
inherit and use. So this is connected there, through Ray.
"""

from __future__ import annotations

import sys
from itertools import pairwise

from rlotel.integrations.configuration import version
from rlotel.integrations.openrlhf import rows
from rlotel.integrations.openrlhf.engines import Engines
from rlotel.integrations.openrlhf.generator import Generator
from rlotel.integrations.openrlhf.trainer import Trainer
from rlotel.integrations.openrlhf.workers import Workers, in_worker
from rlotel.patching import Observer, Patches
from rlotel.recorder import Recorder

TRAINER = "openrlhf.trainer.ppo_trainer:BasePPOTrainer"
GENERATOR = "openrlhf.trainer.ppo_utils.samples_generator:SamplesGenerator"
MAKER = "openrlhf.trainer.ppo_utils.experience_maker:RemoteExperienceMaker"
GROUP = "openrlhf.trainer.ray.launcher:RayActorGroup"
LAUNCHER = "openrlhf.cli.train_ppo_ray"


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch OpenRLHF, as far as it is loaded in this process and whatever of it will be."""
    launches = ("-m", LAUNCHER) in pairwise(sys.orig_argv) or GROUP.partition(":")[0] in sys.modules
    if launches and not in_worker():
        # It will have exported before its arguments are read.
        recorder.identify(system="openrlhf", system_version=version("openrlhf"))
        recorder.loop_is_elsewhere()
    trainer, generator = Trainer(recorder), Generator(recorder)
    patches.when_undone(trainer.loops.stop)
    patches.watch("openrlhf.utils:get_strategy", before=trainer.launched)
    if in_worker():
        _watch_trainer(patches, trainer)
    _watch_generation(patches, trainer, generator)
    _watch_experience(patches, trainer)
    Engines(patches, recorder).connect()
    Workers(recorder).connect(patches)


def _watch_trainer(patches: Patches, trainer: Trainer) -> None:
    patches.watch(f"{TRAINER}.__init__", before=trainer.made)
    patches.watch(f"{TRAINER}.init_checkpoint_states", after=trainer.restored, failed=trainer.broke_off)
    patches.watch(f"{TRAINER}.train_step", failed=trainer.broke_off)
    patches.watch(f"{TRAINER}.ppo_train", before=trainer.training, after=trainer.trained, failed=trainer.trained)
    patches.watch(
        f"{TRAINER}.broadcast_to_vllm", before=trainer.syncing, after=trainer.synced, failed=trainer.synced
    )
    patches.watch(
        f"{TRAINER}.save_logs_and_checkpoints",
        before=trainer.logging,
        after=trainer.logged,
        failed=trainer.broke_off,
    )
    patches.watch(
        f"{TRAINER}.save_best_checkpoint",
        before=trainer.evaluated,
        after=trainer.saved_best,
        failed=trainer.broke_off,
    )


def _watch_generation(patches: Patches, trainer: Trainer, generator: Generator) -> None:
    """The trainer makes rollouts and evaluates itself, or it waits for an actor that does."""

    def one(here: Observer, there: Observer) -> Observer:
        return lambda call: (here if trainer.here else there)(call)

    patches.watch(f"{GENERATOR}.__init__", before=generator.made)
    patches.watch(
        f"{GENERATOR}.generate_samples",
        before=one(trainer.generating, generator.generating),
        after=one(trainer.generated, generator.generated),
        failed=one(trainer.broke_off, generator.generated),
    )
    patches.watch(
        f"{GENERATOR}.generate_eval_samples",
        before=one(trainer.evaluating, generator.evaluating),
        after=one(trainer.ended, generator.evaluated),
        failed=one(trainer.broke_off, generator.evaluated),
    )
    patches.watch(f"{GENERATOR}._process_response_into_experience", after=rows.turns)
    queue = "ray.util.queue:Queue"
    patches.watch(f"{queue}.get", before=trainer.waiting, after=one(trainer.waited, generator.told))
    patches.watch(f"{queue}.put", after=generator.put)


def _watch_experience(patches: Patches, trainer: Trainer) -> None:
    groups = trainer.groups
    patches.watch(f"{GROUP}.async_run_method", before=trainer.requesting, after=trainer.requested)
    patches.watch(
        f"{MAKER}.make_experience_batch",
        before=trainer.making,
        after=trainer.made_experience,
        failed=trainer.made_experience,
    )
    patches.watch(f"{MAKER}._dispatch_forward", before=groups.asking, after=groups.asked, failed=groups.asked)
    patches.watch(f"{MAKER}._flatten_results", after=groups.answered, failed=groups.answered)
    patches.watch(
        f"{MAKER}.compute_advantages_and_returns",
        before=trainer.computing_advantages,
        after=trainer.ended,
        failed=trainer.ended,
    )
