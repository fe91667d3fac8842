"""verl 0.5 to 0.9: its timers, its log calls, and what of it happens in the processes of its workers.

verl's loop runs in a Ray actor, so this is connected there, by `rlotel.integrations.verl.plugin` or through Ray.
"""

from __future__ import annotations

from rlotel.integrations.verl.loops import Loops
from rlotel.integrations.verl.untimed import Untimed
from rlotel.patching import Patches
from rlotel.recorder import Recorder


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch verl, as far as it is loaded in this process and whatever of it will be."""
    loops = Loops(recorder)
    untimed = Untimed(recorder, loops)
    patches.watch("verl.trainer.constants_ppo:get_ppo_ray_runtime_env", before=loops.configured)
    patches.watch("verl.utils.tracking:Tracking.__init__", before=loops.tracked)
    patches.watch("verl.utils.tracking:Tracking.log", before=loops.logged)
    patches.watch("verl.utils.profiler.performance:_timer", before=loops.begin, after=loops.end, failed=loops.end)
    patches.watch("verl.trainer.ppo.metric_utils:_compute_response_info", after=loops.lengths)
    for trainer in ("verl.trainer.ppo.ray_trainer:RayPPOTrainer", "verl.trainer.ppo.v1.trainer_base:PPOTrainer"):
        patches.watch(f"{trainer}.__init__", before=loops.configured)
        patches.watch(f"{trainer}._validate", before=untimed.begin_validation, after=loops.end, failed=loops.end)
        patches.watch(
            f"{trainer}._load_checkpoint",
            before=untimed.begin_restore,
            after=untimed.end_restore,
            failed=untimed.end_restore,
        )
    patches.watch("verl.trainer.ppo.v1.trainer_base:PPOTrainer._compute_metrics", before=loops.batch)
    patches.watch(
        "verl.checkpoint_engine.base:CheckpointEngineManager.update_weights",
        before=untimed.begin_sync,
        after=loops.end,
        failed=loops.end,
        under="verl.utils.ray_utils:auto_await",
    )
