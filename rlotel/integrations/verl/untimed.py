"""What verl does without a timer: the first transfer of weights, the first validation, restoring a checkpoint."""

from __future__ import annotations

from rlotel.integrations.verl.loops import Loops
from rlotel.integrations.verl.tables import TIMERS
from rlotel.patching import Call
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv.attributes import CheckpointOperation
from rlotel.words import CHECKPOINT


class Untimed:
    """Phases around functions. Inside of a timer of the same meaning they are that timer's."""

    def __init__(self, recorder: Recorder, loops: Loops) -> None:
        self._recorder = recorder
        self._loops = loops

    def begin_sync(self, call: Call) -> None:
        """Weights are about to go to the rollouts."""
        self._loops.open(call, TIMERS["update_weights"])

    def begin_validation(self, call: Call) -> None:
        """A validation begins."""
        self._loops.open(call, TIMERS["testing"])

    def begin_restore(self, call: Call) -> None:
        """A checkpoint is looked for, and restored if there is one."""
        self._loops.numbering.meet(call.instance)
        call.notes["began"] = self._recorder.now()

    def end_restore(self, call: Call) -> None:
        """It was restored, if the trainer goes on from a later step than the first."""
        step = getattr(call.instance, "global_steps", 0)
        if "began" in call.notes and (step or call.error is not None):
            attributes: dict[str, str | bool | None] = {
                attr.CHECKPOINT_OPERATION.name: CheckpointOperation.RESTORE.value,
                attr.CHECKPOINT_BLOCKING.name: True,
            }
            phase = self._recorder.open_phase(CHECKPOINT, attributes, at=call.notes["began"])
            self._recorder.close_phase(phase, call.error)
