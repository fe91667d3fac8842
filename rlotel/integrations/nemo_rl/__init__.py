"""NeMo RL, 0.4 to the main branch: its timers, its log calls and checkpoints, its rollouts and its policies.

The loop runs where a training function does, or in the single controller's actor; rollouts may be made elsewhere.
NeMo RL's workers have locked environments of their own: they find rlotel on `PYTHONPATH`, or are left alone.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from rlotel.integrations.models import Models
from rlotel.integrations.nemo_rl.checkpoints import Checkpoints
from rlotel.integrations.nemo_rl.counts import Counts
from rlotel.integrations.nemo_rl.iterations import Iterations
from rlotel.integrations.nemo_rl.passes import Passes
from rlotel.integrations.nemo_rl.rollouts import Rollouts
from rlotel.integrations.nemo_rl.tables import (
    CHECK_OF_CONTROLLER,
    RESUME_OF_CONTROLLER,
    ROLLOUTS,
    SYNCHRONIZERS,
    TRAININGS,
)
from rlotel.integrations.nemo_rl.trainings import Trainings
from rlotel.integrations.nemo_rl.values import Values
from rlotel.patching import Observer, Patches
from rlotel.recorder import Recorder


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch NeMo RL, as far as it is loaded in this process and whatever of it will be."""
    iterations = Iterations(recorder)
    models = Models(recorder)
    counts = Counts(recorder, iterations, models)
    passes = Passes(patches, recorder, iterations, counts, models)
    rollouts = Rollouts(recorder, iterations, counts)
    trainings = Trainings(recorder, iterations, passes, models)
    checkpoints = Checkpoints(recorder, iterations)

    patches.when_undone(iterations.stop)
    timer = "nemo_rl.utils.timer:Timer"
    patches.watch(f"{timer}.start", after=iterations.started)
    patches.watch(f"{timer}.stop", before=iterations.stopping, after=iterations.stopped)
    patches.watch(f"{timer}.reset", before=iterations.reset)
    patches.watch("nemo_rl.utils.logger:Logger.log_metrics", before=Values(recorder, iterations, counts).logged)
    for target, training in TRAININGS.items():
        _watch_function(
            patches,
            target,
            before=partial(trainings.begin, training),
            after=trainings.end,
            failed=trainings.end,
        )
    for name in ROLLOUTS:
        _watch_function(
            patches,
            f"nemo_rl.experience.rollouts:{name}",
            before=rollouts.begin,
            after=rollouts.made,
            failed=rollouts.failed,
        )
    _watch_function(
        patches,
        "nemo_rl.experience.rollouts:calculate_rewards",
        before=rollouts.scoring,
        after=rollouts.scored,
        failed=rollouts.scored,
    )
    _watch_function(
        patches,
        "nemo_rl.algorithms.grpo:refit_policy_generation",
        before=rollouts.syncing,
        after=rollouts.synced,
        failed=rollouts.synced,
    )
    for target in SYNCHRONIZERS:
        patches.watch(
            target, before=rollouts.syncing, after=rollouts.synced, failed=rollouts.synced, optional=True
        )
    _watch_function(patches, CHECK_OF_CONTROLLER, before=trainings.configured)
    patches.watch(RESUME_OF_CONTROLLER, before=trainings.resumed, optional=True)
    policy = "nemo_rl.models.policy.tq_policy:TQPolicy"
    patches.watch(f"{policy}.train_microbatches_from_meta", after=counts.accumulated, optional=True)
    patches.watch(f"{policy}.finish_train_step", after=counts.stepped, optional=True)
    manager = "nemo_rl.utils.checkpoint:CheckpointManager"
    patches.watch(f"{manager}.begin_finalization", before=checkpoints.finalizing, optional=True)
    patches.watch(f"{manager}.finalize_pending", failed=checkpoints.failed, optional=True)
    patches.watch(f"{manager}._rename_checkpoint", after=checkpoints.finalized, optional=True)
    patches.watch(f"{manager}.finalize_checkpoint", after=checkpoints.finalized)


def _watch_function(
    patches: Patches,
    target: str,
    *,
    before: Observer,
    after: Observer | None = None,
    failed: Observer | None = None,
) -> None:
    """Watch a function, also in those modules that have imported it by its name already."""
    module, _, name = target.partition(":")
    original: Any = getattr(sys.modules.get(module), name, None)
    patches.watch(target, before=before, after=after, failed=failed, optional=True)
    if original is None:
        return
    wrapped = getattr(sys.modules[module], name)
    for other in list(sys.modules.values()):
        if getattr(other, "__dict__", {}).get(name) is original:
            patches.replace(other, name, wrapped)
