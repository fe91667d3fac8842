"""The iterations of the trainer in this process: what OpenRLHF's methods do becomes loops, phases and numbers.

A synchronous iteration begins as rollouts are asked for. An asynchronous one begins as the trainer starts to wait
for rollouts that another actor makes. Both are over when they are logged and, where it is time for one, evaluated.
"""

from __future__ import annotations

import math
from typing import Any

from rlotel import context
from rlotel.integrations.loops import Loops
from rlotel.integrations.openrlhf import rows
from rlotel.integrations.openrlhf.counts import Counts
from rlotel.integrations.openrlhf.groups import Groups
from rlotel.integrations.openrlhf.setup import Setup
from rlotel.integrations.openrlhf.tables import EVALUATION, EXPERIENCE, GAUGES, KL_LOSS, SIZES
from rlotel.integrations.ray.ends import END_WAIT
from rlotel.integrations.tables import Timed
from rlotel.patching import Call
from rlotel.phases import Phase
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv.attributes import CheckpointOperation, SampleKind
from rlotel.words import CHECKPOINT, SAMPLE, SYNC, TRAIN

_EVALUATE = Timed("evaluate")
_SAVE = Timed(CHECKPOINT, operation=CheckpointOperation.SAVE)
_SAMPLE = {kind: Timed(SAMPLE, kind=kind) for kind in SampleKind}


class Trainer:
    """What is watched of a `BasePPOTrainer` and of what it uses."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.loops = Loops(recorder, alone=True)
        self._counts = Counts(recorder)
        self._setup = Setup()
        self._trainer: Any = None
        self._done = 0
        """Iterations that were done, those of an earlier launch included."""
        self._episodes = math.inf
        """How often the prompts will still run out."""
        self._begun = False
        """Whether the open iteration has nothing to train on yet."""
        self._moving: Phase | None = None
        self._saving: Call | None = None
        """The call in which a checkpoint may be saved."""
        self.groups = Groups(recorder)

    @property
    def here(self) -> bool:
        """Whether this process has the trainer."""
        return self._trainer is not None

    # What the arguments say.

    def launched(self, call: Call) -> None:
        """Before `get_strategy`: the launcher has the arguments, and will start the trainer."""
        setup = Setup(call.arguments.get("args"))
        if setup.trains_by_rollouts:
            self.meet(setup)
            self._recorder.loop_is_elsewhere()

    def made(self, call: Call) -> None:
        """Before `BasePPOTrainer.__init__`."""
        self._trainer = call.instance
        self._setup = Setup(call.arguments["strategy"].args)
        self.meet(self._setup)
        self.loops.setup, self._counts.setup = self._setup.phases(), self._setup
        self.groups.train_batch_size = self.loops.setup.train_batch_size
        self._recorder.loop_is_here()
        self._counts.models.look_up(self._setup)

    def meet(self, setup: Setup) -> None:
        """Tell who the run is."""
        self._recorder.identify(**setup.identity())
        self._recorder.equip(setup.hardware())

    def restored(self, call: Call) -> None:
        """After `init_checkpoint_states`: where training goes on."""
        self._done = int(call.result["global_step"])
        self._episodes = (self._setup.get("train.num_episodes") or math.inf) - int(call.result["episode"])

    # Rollouts.

    def generating(self, call: Call) -> None:
        """Before `generate_samples`, in a trainer that makes its rollouts itself."""
        if not self._begun:
            self._begin()
        kind = SampleKind.WAIT if rows.buffered(call.instance, self._setup.rows) else SampleKind.GENERATE
        self._counts.sample = self.loops.open(_SAMPLE[kind], call)

    def generated(self, call: Call) -> None:
        """After it."""
        try:
            self._brought(call)
        finally:
            self.loops.shut(call)

    def _brought(self, call: Call) -> None:
        """Rollouts are there. That the prompts have run out shows only when there are none."""
        rollouts, _, consumed, exhausted = call.result
        self._episodes -= bool(exhausted)
        if not rollouts and not consumed:
            drop(call, self._recorder)
            if self._episodes <= 0:
                self.loops.forget()
                self._begun = False
                self._over()
            return
        self._begun = not rollouts
        if self._counts.sample is not None:
            rows.stamp(call.instance, call.result, self._counts.sample, self._recorder.now())

    def waiting(self, call: Call) -> None:
        """Before `Queue.get`, of any queue."""
        if self.here and call.instance is getattr(self._trainer, "rollout_queue", None):
            call.notes["since"] = self._recorder.now()

    def waited(self, call: Call) -> None:
        """After it. Evaluations and the end of training come the same way, and are no iterations."""
        since, payload = call.notes.get("since"), call.result
        if since is None:
            return
        if is_end(payload):
            self._over()
        if not (isinstance(payload, tuple) and isinstance(payload[0], list)):
            return
        self._begin(at=since)
        metric, span = (
            {attr.SAMPLE_KIND.name: SampleKind.WAIT.value},
            {attr.SAMPLE_BATCH_SIZE.name: self._setup.rows},
        )
        waited = self._counts.sample = self._recorder.open_phase(SAMPLE, metric, span, waits=True, at=since)
        if waited is not None:
            self._recorder.close_phase(waited)

    def _begin(self, at: float | None = None) -> None:
        self.loops.begin(self._done + 1, at=at)
        self.groups.forget()
        self._counts.begin()
        self._begun = True

    # From rollouts to what is trained on.

    def making(self, call: Call) -> None:
        """Before `make_experience_batch`."""
        if not self.here:
            return
        if self.loops.current is None:
            self._begin()
        self._begun = False
        self.loops.open(Timed(EXPERIENCE), call)
        self._counts.brought(call)

    def made_experience(self, call: Call) -> None:
        """After it; what was made goes to the workers that train, in no function of its own."""
        self.groups.close(None, call.error)
        self.loops.shut(call)
        if self.here and call.error is None:
            self._moving = self._recorder.open_phase("data")

    def computing_advantages(self, call: Call) -> None:
        """Before `compute_advantages_and_returns`."""
        if self.here:
            self.loops.open(Timed("advantage"), call)

    # Updates.

    def training(self, call: Call) -> None:  # noqa: ARG002 - an observer
        """Before `ppo_train`: what is trained on is where it is needed."""
        self._moved(None)

    def requesting(self, call: Call) -> None:
        """Before `RayActorGroup.async_run_method`."""
        if not self.here:
            return
        method = call.arguments["method_name"]
        if method != "save_checkpoint":
            self.groups.updating(method, call.instance, self._trainer, call)
        elif self._saving is not None and self._setup.saves and "phase" not in self._saving.notes:
            self.loops.open(_SAVE, self._saving)

    def requested(self, call: Call) -> None:
        """After it."""
        self.groups.requested(call)

    def trained(self, call: Call) -> None:
        """After `ppo_train`."""
        self.groups.close(TRAIN, call.error)
        if call.error is None:
            self._counts.trained(self.groups.phases)

    def syncing(self, call: Call) -> None:
        """Before `broadcast_to_vllm` of the base class. An asynchronous trainer's own first waits for a lock."""
        call.notes["sync"] = self.loops.open(Timed(SYNC), call)

    def synced(self, call: Call) -> None:
        """After it."""
        sync = call.notes["sync"]
        self.loops.shut(call)
        if sync is not None and call.error is None:
            self._counts.synced(sync)

    def broke_off(self, call: Call) -> None:
        """After `train_step` has raised, or what else an iteration consists of."""
        self.groups.close(None, call.error)
        self._moved(call.error)
        self.loops.shut(call)
        self.loops.end(call.error)
        self._begun = False

    def _moved(self, error: BaseException | None) -> None:
        moving, self._moving = self._moving, None
        if moving is not None:
            self._recorder.close_phase(moving, error)

    # The end of an iteration.

    def logging(self, call: Call) -> None:
        """Before `save_logs_and_checkpoints`."""
        self._saving = call
        self._done = int(call.arguments["global_step"])
        logged = call.arguments["logs_dict"] or {}
        self.loops.tell(logged, GAUGES)
        if self._setup.kl_is_loss:
            self.loops.tell(logged, KL_LOSS)

    def logged(self, call: Call) -> None:
        """After it; an evaluation may follow, which is a part of the iteration."""
        self._saving = None
        self.loops.shut(call)
        every, prompts = self._setup.get("eval.steps"), getattr(self._trainer, "eval_dataloader", None)
        if not (every and prompts and self._done % every == 0):
            self._close()

    def evaluating(self, call: Call) -> None:
        """Before `generate_eval_samples`, in a trainer that makes its rollouts itself."""
        self.loops.open(_EVALUATE, call)

    def evaluated(self, call: Call) -> None:
        """Before `save_best_checkpoint`: the scores are there."""
        self._saving = call
        scores = call.arguments["eval_metrics"] or {}
        self.loops.evaluated({name: scores[name] for name in scores if name not in SIZES}, EVALUATION)

    def saved_best(self, call: Call) -> None:
        """After it."""
        self._saving = None
        self.loops.shut(call)
        self._close()

    def _close(self) -> None:
        self.loops.close()
        if self._episodes <= 0:
            self._over()

    def _over(self) -> None:
        """Training has ended. This actor will be gone without being asked, so it exports what it has."""
        self._recorder.process.flush(END_WAIT)

    def ended(self, call: Call) -> None:
        """After a phase that has no more to it."""
        self.loops.shut(call)


def is_end(item: object) -> bool:
    """Whether this is what comes through a queue after the last rollouts."""
    return isinstance(item, str) and item == "done"


def drop(call: Call, recorder: Recorder) -> None:
    """A phase that began with this call is none: it leaves no span, and its time is left to what follows."""
    phase: Phase | None = call.notes.pop("phase", None)
    if phase is not None:
        context.leave(call.notes.pop("entered"))
        recorder.ages.end(phase)
        if phase.loop is not None:
            phase.loop.end(phase, recorder.now())
        phase.abandon()
