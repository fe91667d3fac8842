"""Weights & Biases: `wandb.log` and `Run.log`, which both end in one method of the run."""

from __future__ import annotations

from rlotel.adapters.log import Log
from rlotel.patching import Call, Patches


def connect(patches: Patches, log: Log) -> None:
    """Take what a run logs; one of mode "disabled" does not come so far."""

    def logged(call: Call) -> None:
        step, commit = call.arguments["step"], call.arguments["commit"]
        whole = bool(commit) or (step is None and commit is None)
        if step is None:
            step = call.instance.step - whole  # it has gone on by now
        log.take(call.arguments["data"], step, whole=whole)

    # `wandb.log` is the bound method of a run that may have been made long ago.
    patches.watch("wandb.sdk.wandb_run:Run._log", after=logged)
