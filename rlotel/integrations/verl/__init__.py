"""verl 0.5 to 0.9: its timers, its log calls, and what of it happens in the processes of its workers.

verl's loop runs in a Ray actor, so this is connected there, by `rlotel.integrations.verl.plugin` or through Ray.
"""

from __future__ import annotations

import sys
from itertools import pairwise

from rlotel.integrations.configuration import version
from rlotel.integrations.verl.loops import Loops
from rlotel.integrations.verl.rollouts import Rollouts
from rlotel.integrations.verl.untimed import Untimed
from rlotel.integrations.verl.workers import Workers
from rlotel.patching import Call, Patches
from rlotel.recorder import Recorder

TRAINERS = ("verl.trainer.ppo.ray_trainer:RayPPOTrainer", "verl.trainer.ppo.v1.trainer_base:PPOTrainer")
FITS = (
    *(f"{trainer}.fit" for trainer in TRAINERS),
    "verl.experimental.separation.ray_trainer:SeparateRayPPOTrainer.fit",
    "verl.experimental.one_step_off_policy.ray_trainer:OneStepOffRayTrainer.fit",
)
"""The loops. fully-async's is sent to its actor by value, and can't be watched."""


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch verl, as far as it is loaded in this process and whatever of it will be."""
    loops, rollouts = Loops(recorder), Rollouts(recorder)
    if any(flag == "-m" and name.startswith("verl.") for flag, name in pairwise(sys.orig_argv)):
        # A launcher, which will have exported before verl is imported and its configuration is read.
        recorder.identify(system="verl", system_version=version("verl"))
    _watch_timers(patches, loops, rollouts)
    _watch_trainers(patches, recorder, loops)
    # What every agent loop is run in. The method around it is of no use: Ray sends it by value, without us.
    patches.watch(
        "verl.utils.rollout_trace:rollout_trace_attr",
        before=rollouts.begin,
        after=rollouts.end,
        failed=rollouts.end,
    )
    workers = Workers(recorder)
    patches.watch(
        "verl.utils.tracking:RLInsightLogger.trace_state",
        before=workers.begin,
        after=workers.end,
        failed=workers.end,
        optional=True,
    )


def _watch_timers(patches: Patches, loops: Loops, rollouts: Rollouts) -> None:
    """All timers of all processes, of the trainer's phases and of the parts of a rollout, are one function."""

    def begin(call: Call) -> None:
        loops.begin(call)
        rollouts.begin_part(call)

    def end(call: Call) -> None:
        loops.end(call)
        rollouts.end_part(call)

    patches.watch("verl.utils.profiler.performance:_timer", before=begin, after=end, failed=end)


def _watch_trainers(patches: Patches, recorder: Recorder, loops: Loops) -> None:
    patches.watch("verl.trainer.constants_ppo:get_ppo_ray_runtime_env", before=loops.launched)
    patches.watch("verl.utils.tracking:Tracking.__init__", before=loops.settled)
    patches.watch("verl.utils.tracking:Tracking.log", before=loops.logged)
    patches.watch("verl.trainer.ppo.metric_utils:_compute_response_info", after=loops.lengths)
    patches.watch("verl.trainer.ppo.v1.trainer_base:PPOTrainer.__init__", before=loops.made)
    patches.watch("verl.trainer.ppo.v1.trainer_base:PPOTrainer._compute_metrics", before=loops.batch)
    for fit in FITS:
        patches.watch(fit, after=loops.over, failed=loops.over, optional=True)
    untimed = Untimed(recorder, loops)
    for trainer in TRAINERS:
        patches.watch(f"{trainer}._validate", before=untimed.begin_validation, after=loops.end, failed=loops.end)
        patches.watch(
            f"{trainer}._load_checkpoint",
            before=untimed.begin_restore,
            after=untimed.end_restore,
            failed=untimed.end_restore,
        )
    patches.watch(
        "verl.checkpoint_engine.base:CheckpointEngineManager.update_weights",
        before=untimed.begin_sync,
        after=loops.end,
        failed=loops.end,
        under="verl.utils.ray_utils:auto_await",
    )
