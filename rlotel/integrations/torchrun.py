"""torchrun, accelerate and trl: the loop is in one of the ranks that they start, not in the command itself."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePath

from rlotel.patching import Call, Patches
from rlotel.recorder import Recorder

COMMANDS = frozenset({"torchrun", "accelerate", "trl"})
MODULES = frozenset({"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"})


def connect(patches: Patches, recorder: Recorder) -> None:
    """Tell it at once of a command, which takes a while until it launches; else as a program launches ranks."""

    def launches(_call: Call) -> None:
        recorder.loop_is_elsewhere()

    if _is_launcher(sys.orig_argv):
        recorder.loop_is_elsewhere()
    patches.watch("torch.distributed.launcher.api:launch_agent", before=launches, optional=True)


def _is_launcher(command: Sequence[str]) -> bool:
    return PurePath(next(iter(command[1:]), "")).name in COMMANDS or any(
        flag == "-m" and module in MODULES for flag, module in pairwise(command)
    )
