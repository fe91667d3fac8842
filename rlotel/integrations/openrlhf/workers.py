"""The workers that hold the models: what each of them does, so that a straggler among them shows."""

from __future__ import annotations

import posixpath
import sys
from functools import partial

from rlotel import context
from rlotel.instruments import Value
from rlotel.integrations.openrlhf.tables import FORWARD, UPDATE, WORKERS
from rlotel.integrations.tables import Timed
from rlotel.patching import Call, Observer, Patches
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import CheckpointOperation, Role
from rlotel.words import CHECKPOINT, SYNC

ACTOR = "openrlhf.trainer.ray.ppo_actor:ActorPPOTrainer"
CRITIC = "openrlhf.trainer.ray.ppo_critic:CriticPPOTrainer"
LAUNCHER = "openrlhf.trainer.ray.launcher:"
STRATEGY = "openrlhf.utils.deepspeed.deepspeed:DeepspeedStrategy"

_RESTORE = Timed(CHECKPOINT, operation=CheckpointOperation.RESTORE)
_SAVE = Timed(CHECKPOINT, operation=CheckpointOperation.SAVE)
_WORKER = "default_worker.py"
"""The program that Ray's workers run."""
_POLICY = "_actor"
"""The folder of the policy among those of a checkpoint."""


def in_worker() -> bool:
    """Whether Ray has started this process as a worker: only there the base classes of actors are watched.

    As Ray makes an actor's class, in the module of its base class, it puts all inherited methods into it. In the
    process that sends the class they must remain what their names say: else Ray sends them by value, as they were
    when the class was made, and they could not be watched where the actor is.
    """
    return any(argument.endswith(_WORKER) for argument in sys.orig_argv)


class Workers:
    """The work of this worker."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def connect(self, patches: Patches) -> None:
        """Watch what workers do."""
        if in_worker():
            patches.watch(f"{LAUNCHER}BaseDistributedActor.__init__", after=self._made)
            self._watch(patches, f"{LAUNCHER}BaseModelActor.execute_batch", self._batch)
        self._watch(patches, f"{ACTOR}.ppo_train", partial(self._open, UPDATE[Role.ACTOR]))
        self._watch(patches, f"{CRITIC}.ppo_train", partial(self._open, UPDATE[Role.CRITIC]))
        self._watch(patches, f"{ACTOR}.broadcast_to_vllm", partial(self._open, Timed(SYNC)))
        self._watch(patches, f"{STRATEGY}.save_ckpt", partial(self._open, _SAVE))
        self._watch(patches, f"{STRATEGY}.load_ckpt", partial(self._open, _RESTORE), self._restored)

    def _watch(self, patches: Patches, target: str, before: Observer, after: Observer | None = None) -> None:
        patches.watch(target, before=before, after=after or self._close, failed=self._close)

    def _made(self, call: Call) -> None:
        if _role(call) in UPDATE:
            self._recorder.process.use_gpus(Role.TRAINER.value)

    def _batch(self, call: Call) -> None:
        role = _role(call)
        if role is not None and call.arguments["method_name"] == "forward":
            self._open(FORWARD[role], call)

    def _open(self, timed: Timed, call: Call) -> None:
        phase = self._recorder.open_phase(timed.phase, {attr.ROLE.name: timed.role and str(timed.role)})
        if phase is not None:
            call.notes["phase"], call.notes["entered"] = phase, context.enter(phase)

    def _close(self, call: Call) -> None:
        phase = call.notes.pop("phase", None)
        if phase is not None:
            context.leave(call.notes.pop("entered"))
            self._recorder.close_phase(phase, call.error)

    def _restored(self, call: Call) -> None:
        """The policy was read from a checkpoint: told by the first of its workers, as the trainer has no part."""
        phase = call.notes.get("phase")
        seconds = 0.0 if phase is None else self._recorder.now() - phase.started
        self._close(call)
        folder = posixpath.basename(str(call.arguments["load_dir"]).rstrip("/"))
        if phase is not None and folder == _POLICY and call.instance.is_rank_0() and call.result[0] is not None:
            attributes: dict[str, Value] = {
                attr.CHECKPOINT_OPERATION.name: CheckpointOperation.RESTORE.value,
                attr.CHECKPOINT_BLOCKING.name: True,
            }
            self._recorder.instruments.record(m.CHECKPOINT_DURATION, seconds, attributes)


def _role(call: Call) -> Role | None:
    """Which model this worker has. Ray calls methods of its class with the object among their arguments."""
    return WORKERS.get(type(call.arguments["self"]).__name__)
