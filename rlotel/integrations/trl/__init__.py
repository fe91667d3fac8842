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
    # It is told when a trainer is made, before which a model may be loaded for minutes.
    recorder.identity.expect("algorithm")
    patches.watch(f"{_TRAINER}.__init__", after=trainings.made)
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
    patches.watch(
        f"{_TRAINER}._load_from_checkpoint",
        **trainings.bracket(checkpoints.begin_model, checkpoints.end_model, trainings.not_restored),
    )
    patches.watch(
        f"{_TRAINER}._load_optimizer_and_scheduler",
        **trainings.bracket(checkpoints.begin_rest, checkpoints.end_rest, checkpoints.end_rest),
    )
    for target in tables.TRANSFERS:
        patches.watch(target, **loops.phase(tables.TRANSFER), optional=True)
    patches.when_undone(loops.stop)
