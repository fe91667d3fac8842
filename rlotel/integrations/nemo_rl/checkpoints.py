"""Checkpoints of NeMo RL: when one can be restored, which may be while training has gone on."""

from __future__ import annotations

import re

from rlotel.integrations.nemo_rl.iterations import Iterations
from rlotel.integrations.nemo_rl.setup import UNKNOWN, Setup
from rlotel.patching import Call
from rlotel.phases import Phase
from rlotel.recorder import Recorder
from rlotel.words import CHECKPOINT

_STEP = re.compile(r"step_(\d+)/?$")


class Checkpoints:
    """Follows a `CheckpointManager`. The timer `checkpointing` is around what blocks training."""

    def __init__(self, recorder: Recorder, iterations: Iterations) -> None:
        self._recorder = recorder
        self._iterations = iterations
        self._pending: dict[str, Phase] = {}

    @property
    def _setup(self) -> Setup:
        return self._iterations.setup or UNKNOWN

    def finalizing(self, call: Call) -> None:
        """Before `begin_finalization` (after 0.7): a thread waits for the writers, then renames the folder."""
        path = _path(call)
        current = self._iterations.current
        phase = self._recorder.open_phase(
            CHECKPOINT, self._setup.checkpoint(blocking=False), inside=current.loop if current else None
        )
        if phase is not None:
            self._pending[path] = phase

    def finalized(self, call: Call) -> None:
        """After the folder was renamed, in whichever thread."""
        path = _path(call)
        phase = self._pending.pop(path, None)
        if phase is not None:
            self._recorder.close_phase(phase)
        found = _STEP.search(path)
        self._recorder.saved(self._setup.checkpoint_tier, int(found[1]) if found else None)

    def failed(self, call: Call) -> None:
        """After `finalize_pending` has raised what went wrong in that thread."""
        error = call.error.__cause__ if call.error is not None and call.error.__cause__ else call.error
        while self._pending:
            self._recorder.close_phase(self._pending.popitem()[1], error)


def _path(call: Call) -> str:
    return str(call.args[0] if call.args else call.kwargs["checkpoint_path"])
