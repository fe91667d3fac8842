"""SkyRL 0.1 to 0.3, and skyrl_train 0.3 and 0.4 before it: its trainers, synchronous and fully asynchronous.

The loop runs in a task of Ray, so this is connected there through Ray. Its callbacks are left alone: the
asynchronous trainer refuses to have any.
"""

from __future__ import annotations

import sys

from rlotel.integrations.skyrl.iterations import Iterations
from rlotel.integrations.skyrl.rollouts import Rollouts
from rlotel.integrations.skyrl.setup import overrides
from rlotel.integrations.skyrl.tables import ASYNCHRONOUS, PACKAGES
from rlotel.integrations.skyrl.updates import Updates
from rlotel.patching import Patches
from rlotel.recorder import Recorder


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch SkyRL, as far as it is loaded in this process and whatever of it will be."""
    iterations = Iterations(recorder)
    if (asked := overrides(sys.orig_argv, PACKAGES)) is not None:
        iterations.starting(asked)
    rollouts = Rollouts(patches, recorder, iterations)
    updates = Updates(patches, iterations)
    patches.when_undone(iterations.stop)
    patches.watch("skyrl_gym:make", after=rollouts.created)
    for package in PACKAGES:
        patches.watch(f"{package}.utils.utils:initialize_ray", before=iterations.launched)
        patches.watch(f"{package}.utils.utils:Timer.__enter__", before=iterations.started)
        patches.watch(f"{package}.utils.utils:Timer.__exit__", after=iterations.stopped)
        patches.watch(f"{package}.utils.tracking:Tracking.log", before=iterations.logged)
        trainer = f"{package}.trainer:RayPPOTrainer"
        patches.watch(f"{trainer}.__init__", before=iterations.made)
        patches.watch(f"{trainer}.eval", after=iterations.evaluated)
        patches.watch(
            f"{trainer}.load_checkpoints",
            before=iterations.restoring,
            after=iterations.restored,
            failed=iterations.restored,
        )
        patches.watch(f"{trainer}.fwd_logprobs_values_reward", before=updates.looked_at)
        patches.watch(
            f"{trainer}._execute_forward_pass",
            before=updates.passing,
            after=updates.passed,
            failed=iterations.loops.shut,
            optional=True,
        )
        for train in (trainer, f"{package}.fully_async_trainer:{ASYNCHRONOUS}"):
            patches.watch(
                f"{train}.train", before=iterations.trains, after=iterations.over, failed=iterations.over
            )
        # Also of a trainer with a loop of its own.
        patches.watch(
            f"{package}.entrypoints.main_base:BasePPOExp.run", after=iterations.over, failed=iterations.over
        )
