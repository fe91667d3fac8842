"""Stable-Baselines3: its algorithms' `learn`, which samples with `collect_rollouts` and updates with `train`.

One such round is an iteration, but for those that take a moment only (A2C's and all off-policy algorithms'): these
are gathered until a second has passed. What SB3 logs is read as it is recorded: it is dumped one update late, and
that of the last update never.
"""

from __future__ import annotations

from rlotel.integrations.stable_baselines3.evaluations import Evaluations
from rlotel.integrations.stable_baselines3.learning import Learning
from rlotel.integrations.stable_baselines3.setup import Environments
from rlotel.integrations.stable_baselines3.tables import LOAD, LOAD_BUFFER, SAVE, SAVE_BUFFER
from rlotel.patching import Patches
from rlotel.recorder import Recorder

COMMON = "stable_baselines3.common"
ALGORITHM = f"{COMMON}.base_class:BaseAlgorithm"
ON_POLICY = f"{COMMON}.on_policy_algorithm:OnPolicyAlgorithm"
OFF_POLICY = f"{COMMON}.off_policy_algorithm:OffPolicyAlgorithm"
EVALUATE = (f"{COMMON}.evaluation:evaluate_policy", f"{COMMON}.callbacks:evaluate_policy")
"""The second is what was imported before it was watched."""


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch the base classes of algorithms; a model's own class is watched from when it is met."""
    environments = Environments()
    learning = Learning(patches, recorder, environments)
    patches.watch(f"{ALGORITHM}.__init__", after=learning.met)
    for learns in (ON_POLICY, OFF_POLICY):
        patches.watch(f"{learns}.learn", before=learning.begin, after=learning.end, failed=learning.end)
    for target, timed in (
        (f"{ALGORITHM}.save", SAVE),
        (f"{ALGORITHM}.load", LOAD),
        (f"{OFF_POLICY}.save_replay_buffer", SAVE_BUFFER),
        (f"{OFF_POLICY}.load_replay_buffer", LOAD_BUFFER),
    ):
        patches.watch(target, **learning.rounds.apart(timed))
    evaluations = Evaluations(learning.rounds)
    for target in EVALUATE:
        patches.watch(target, **evaluations.phase())
    patches.watch(f"{COMMON}.logger:Logger.dump", before=evaluations.dumped)
    patches.watch(f"{COMMON}.env_util:make_vec_env", after=environments.made)
    patches.when_undone(learning.rounds.stop)
