"""rsl_rl 2.3 to 5.5, with which Isaac Lab, mjlab and Genesis train: what its runners call while they learn.

It has neither timers nor callbacks, and its logging differs between versions. The same in all of them is that
`learn` calls its environment and its algorithm, which may be anybody's: so their methods are watched as it begins.
"""

from __future__ import annotations

from rlotel.integrations.rsl_rl.runners import Runners
from rlotel.integrations.rsl_rl.tables import SAVE
from rlotel.patching import Patches
from rlotel.recorder import Recorder

RUNNER = "rsl_rl.runners.on_policy_runner:OnPolicyRunner"
DISTILLATION = "rsl_rl.runners.distillation_runner:DistillationRunner"
"""From 3.0; has a loop of its own before 4.0."""


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch the runners; what they run is watched while they do."""
    runners = Runners(patches, recorder)
    loops = runners.loops
    patches.watch(f"{RUNNER}.__init__", after=runners.made)
    for runner in (RUNNER, DISTILLATION):
        patches.watch(f"{runner}.learn", before=runners.begin, after=runners.end, failed=runners.end)
    patches.watch(f"{RUNNER}.save", **loops.phase(SAVE))
    patches.watch(f"{RUNNER}.load", before=runners.load, after=loops.shut, failed=loops.shut)
    # Before 3.2, where the runner logs, and the returns are known to it alone.
    patches.watch(f"{RUNNER}.log", before=runners.logged, optional=True)
    patches.when_undone(runners.stop)
