"""TRL, 0.29 and later: the trainers of transformers that it brings, on every rank that runs one.

What they share is watched where it is defined, in transformers; what is particular to one, on its class, which is
met as it begins to train. So a class that was made after theirs, or in their place, is followed like theirs.
"""

from __future__ import annotations

from rlotel.integrations.trl import tables
from rlotel.integrations.trl.trainings import Trainings
from rlotel.patching import Patches
from rlotel.recorder import Recorder

_TRAINER = "transformers.trainer:Trainer"


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch TRL, as far as it is loaded in this process and whatever of it will be."""
    trainings = Trainings(patches, recorder)
    loops, checkpoints = trainings.loops, trainings.checkpoints
    patches.watch(f"{_TRAINER}.train", before=trainings.begin, after=trainings.end, failed=trainings.end)
    patches.watch(f"{_TRAINER}._inner_training_loop", failed=trainings.own(trainings.broke_off))
    patches.watch(
        f"{_TRAINER}.get_batch_samples",
        **trainings.bracket(trainings.begin_iteration, trainings.loaded, trainings.loaded),
    )
    patches.watch(
        "transformers.trainer_callback:CallbackHandler.on_step_end",
        before=trainings.step,
        after=trainings.end_iteration,
    )
    patches.watch(f"{_TRAINER}.log", after=trainings.own(trainings.logged))
    patches.watch(
        f"{_TRAINER}.evaluate",
        before=trainings.begin_evaluation,
        after=trainings.end_evaluation,
        failed=trainings.end_evaluation,
    )
    patches.watch(f"{_TRAINER}._save_checkpoint", **trainings.bracket(**loops.phase(tables.SAVE)))
    restoring = trainings.own(checkpoints.begin_restoring)
    patches.watch(f"{_TRAINER}._load_from_checkpoint", before=restoring, failed=trainings.own(checkpoints.failed))
    patches.watch(
        f"{_TRAINER}._load_optimizer_and_scheduler",
        after=trainings.own(checkpoints.restored),
        failed=trainings.own(checkpoints.failed),
    )
    patches.watch("trl.generation.vllm_generation:VLLMGeneration.sync_weights", **loops.phase(tables.TRANSFER))
