"""AReaL, 0.5 to the main branch: its timers, its commits and recovery, and what its workers do.

The loop runs in the controller's process, which is the user's, or in every rank of one program. Rollouts are made
in processes that the controller starts; they inherit its environment and so find rlotel.
"""

from __future__ import annotations

from functools import partial

from rlotel.integrations.areal.iterations import Iterations
from rlotel.integrations.areal.rollouts import Rollouts
from rlotel.integrations.areal.tables import CONTROLLERS, EXECUTORS, GPU_ROLES, RESTORED, TRAINERS
from rlotel.integrations.areal.updates import Updates
from rlotel.patching import Call, Patches
from rlotel.recorder import Recorder
from rlotel.semconv.attributes import Role


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch AReaL, as far as it is loaded in this process and whatever of it will be."""
    iterations = Iterations(patches, recorder)
    patches.when_undone(iterations.loops.stop)
    for trainer in TRAINERS:
        patches.watch(f"{trainer}.__init__", before=iterations.made)
        patches.watch(f"{trainer}.train", before=iterations.trains, after=iterations.over, failed=iterations.over)
    # What everyone calls is this attribute, a method that was bound as the module was loaded, not the class's.
    patches.watch(
        "areal.utils.stats_tracker:record_timing",
        before=iterations.started,
        after=iterations.stopped,
        failed=iterations.stopped,
    )
    logger = "areal.utils.stats_logger:StatsLogger"
    patches.watch(f"{logger}.__init__", before=iterations.logs)
    patches.watch(
        f"{logger}.commit", before=iterations.commits, after=iterations.committed, failed=iterations.committed
    )
    patches.watch("areal.utils.timeutil:EpochStepTimeFreqCtl.check", after=iterations.checked)
    patches.watch("areal.utils.saver:Saver.save", before=iterations.saves)
    handler = "areal.utils.recover:RecoverHandler"
    patches.watch(f"{handler}.load", after=iterations.recovered)
    patches.watch(f"{handler}._load_checkpoint", **iterations.loops.phase(RESTORED))
    for module in CONTROLLERS:
        patches.watch(f"{module}:RolloutController._collective_rpc", after=iterations.collected)
    _watch_workers(patches, Rollouts(patches, recorder))
    Updates(recorder, iterations).watch(patches)
    for target, role in GPU_ROLES.items():
        patches.watch(target, before=partial(_use_gpus, recorder, role), optional=True)


def _use_gpus(recorder: Recorder, role: Role, _call: Call) -> None:
    recorder.process.use_gpus(role.value)


def _watch_workers(patches: Patches, rollouts: Rollouts) -> None:
    for module in EXECUTORS:
        patches.watch(f"{module}:WorkflowExecutor._create_workflow_task", before=rollouts.assigned)
    patches.watch(
        "areal.api.reward_api:AsyncRewardWrapper.__call__",
        before=rollouts.scores,
        after=rollouts.scored,
        failed=rollouts.scored,
    )
    patches.watch(
        "areal.infra.sandbox.runner:DaytonaRunner.run",
        before=rollouts.uses_tool,
        after=rollouts.end_part,
        failed=rollouts.end_part,
        optional=True,
    )
