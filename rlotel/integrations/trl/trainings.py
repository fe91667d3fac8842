"""Trainings: which trainer runs, its iterations, and which of its methods are watched.

An iteration is one optimizer step, from the loading of its batches to the end of the callbacks that follow it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rlotel.integrations.loops import Bracket, Loops, Setup
from rlotel.integrations.trl import setup, tables
from rlotel.integrations.trl.between import Checkpoints, Evaluations, gauges_of
from rlotel.integrations.trl.rollouts import Rollouts
from rlotel.integrations.trl.updates import Updates
from rlotel.patching import Call, Observer, Patches
from rlotel.recorder import Recorder


class Trainings:
    """The trainings of this process, of which one runs at a time. Used by the thread that trains."""

    def __init__(self, patches: Patches, recorder: Recorder) -> None:
        self._patches = patches
        self._recorder = recorder
        self.loops = Loops(recorder)
        self.evaluations = Evaluations(self.loops)
        self.checkpoints = Checkpoints(self.loops)
        self._rollouts = Rollouts(self.loops)
        self._updates = Updates(self.loops, self._rollouts)
        self._trainer: Any = None
        self._training = False
        self._latest = 0
        """The number of the latest iteration that began."""
        self._earlier = 0
        """Iterations of trainings before this one in this process, which its own are counted on from."""
        self._let_go: list[Callable[[], None]] = []
        """What lets go of the methods of the trainer that runs."""

    # Whose calls are followed.

    def own(self, observer: Observer) -> Observer:
        """Only of the trainer that runs: a reward may be given by what another one trains."""

        def observe(call: Call) -> None:
            if call.instance is self._trainer:
                observer(call)

        return observe

    def bracket(self, before: Observer, after: Observer, failed: Observer) -> Bracket:
        """The same of all that is done around a call."""
        return {"before": self.own(before), "after": self.own(after), "failed": self.own(failed)}

    def _meet(self, trainer: Any) -> None:
        """Learn who a trainer is, and watch the methods of its class, those that others put there included."""
        self._trainer = trainer
        self.loops.setup, self._rollouts.architecture = Setup(), None  # not those of the one before
        with self._recorder.faults.contain("what a trainer says of itself"):
            self._describe(trainer)
        if setup.algorithm(trainer) in tables.HIDDEN:
            return
        for name, bracket in self._methods().items():
            owner = next((kind for kind in type(trainer).__mro__ if name in vars(kind)), None)
            if owner is not None:
                self._let_go.append(self._patches.watch_method(owner, name, **bracket))

    def _describe(self, trainer: Any) -> None:
        self._recorder.process.rank = trainer.accelerator.process_index
        self._recorder.identify(**setup.identity(trainer))
        self._recorder.equip(setup.hardware(trainer))
        if (role := setup.gpu_role(trainer)) is not None:
            self._recorder.process.use_gpus(role.value)
        self.loops.setup = setup.setup(trainer)
        self._rollouts.architecture = setup.architecture(trainer)

    def _leave(self) -> None:
        """The trainer is done: nothing of it is kept."""
        self._trainer = None
        while self._let_go:
            self._let_go.pop()()

    def _methods(self) -> Mapping[str, Bracket]:
        rollouts, shut = self._rollouts, self.loops.shut
        return {
            "_generate": self.bracket(self._begin_rollouts, rollouts.made, shut),
            "_generate_and_score_completions": self.bracket(
                self._begin_scoring, rollouts.end_scoring, rollouts.end_scoring
            ),
            "_generate_single_turn": self.bracket(rollouts.begin_turn, rollouts.end_turn, rollouts.end_turn),
            "_tool_call_loop": self.bracket(rollouts.begin_tools, rollouts.end_tools, rollouts.end_tools),
            "_get_per_token_logps_and_entropies": self.bracket(rollouts.begin_pass, shut, shut),
            "compute_loss": self.bracket(self._forward, _nothing, _nothing),
            "_calculate_rewards": self.bracket(**self.loops.phase(tables.SCORE)),
        }

    # Trainings.

    def made(self, call: Call) -> None:
        """After a trainer was made: most likely it will train."""
        if setup.is_trl(call.instance):
            self._recorder.identify(**setup.identity(call.instance))

    def begin(self, call: Call) -> None:
        """Before `train`."""
        if self._trainer is not None or not setup.is_trl(call.instance):
            return
        call.notes["began"] = self._training = True
        self._earlier = 0 if call.arguments["resume_from_checkpoint"] else self._latest
        self._meet(call.instance)
        if not self.loops.reports:
            self._recorder.loop_is_elsewhere()
            return
        self._recorder.loop_is_here()
        if call.instance.args.save_strategy != "no":
            self._recorder.checkpoints.expect(self.loops.setup.checkpoint_tier)

    def end(self, call: Call) -> None:
        """After it, or where it failed."""
        if "began" not in call.notes:
            return
        try:
            self._break_off(call.error)
        finally:
            self._training = False
            self._leave()

    def not_restored(self, call: Call) -> None:
        """Where a checkpoint's model could not be restored."""
        self.checkpoints.end(call.error)

    def broke_off(self, call: Call) -> None:
        """Where `_inner_training_loop` failed, which may be done again with smaller batches."""
        self._break_off(call.error)

    def _break_off(self, error: BaseException | None) -> None:
        self.checkpoints.end(error)
        self._updates.pause(error)
        self.loops.close(error)

    # Evaluations, which may be asked for without a training.

    def begin_evaluation(self, call: Call) -> None:
        """Before `evaluate`."""
        if self._trainer is None and setup.is_trl(call.instance):
            self._meet(call.instance)
        if call.instance is self._trainer:
            self.evaluations.begin(call)

    def end_evaluation(self, call: Call) -> None:
        """After it, or where it failed."""
        if call.instance is not self._trainer:
            return
        try:
            self.evaluations.end(call)
        finally:
            if not self.evaluations.running and not self._training:
                self._leave()

    # Iterations.

    def begin_iteration(self, call: Call) -> None:
        """Before `get_batch_samples`."""
        self.checkpoints.end()
        self._latest = self._earlier + call.instance.state.global_step + 1
        self.loops.begin(self._latest)
        self._updates.reset()
        self.loops.open(tables.WAIT if setup.is_asynchronous(call.instance) else tables.DATA, call)

    def loaded(self, call: Call) -> None:
        """After it: there may be no more batches, and so no iteration."""
        self.loops.shut(call)
        if call.error is None and not call.result[0]:
            self.loops.forget()
            self._latest -= 1

    def step(self, call: Call) -> None:
        """Before the callbacks that follow an optimizer step."""
        trainer = self._trainer
        if trainer is not None and call.instance is trainer.callback_handler and self.loops.current is not None:
            call.notes["step"] = True
            read = self._rollouts.arrived(trainer) if setup.is_asynchronous(trainer) else None
            self._updates.step(trainer, read)

    def end_iteration(self, call: Call) -> None:
        """After them. What is logged of it, and when, makes no difference to it."""
        if "step" in call.notes:
            self.loops.close()

    # Within an iteration.

    def _begin_rollouts(self, call: Call) -> None:
        self._updates.pause()
        self._rollouts.begin(call)

    def _begin_scoring(self, call: Call) -> None:
        self._updates.pause()
        self._rollouts.begin_scoring(call)

    def _forward(self, call: Call) -> None:
        if not self.evaluations.running:
            self._updates.forward(call.instance)

    # Logs.

    def logged(self, call: Call) -> None:
        """After `log`. The last values of training may come with the summary of the whole of it."""
        logs = call.args[0] if call.args else call.kwargs.get("logs")
        if not self.evaluations.running and logs is not None:
            self.loops.tell(logs, gauges_of(call.instance))


def _nothing(_call: Call) -> None:
    """What is done around a call may be done on one side of it only."""
