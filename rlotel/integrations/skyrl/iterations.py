"""The iterations of SkyRL: its timers become loops and phases, and its log calls tell their numbers.

The synchronous trainer logs an iteration after the evaluation that follows it; the asynchronous one logs its
values first, then evaluates and saves, while rollouts go on that belong to it. With dynamic sampling the timer of
one iteration runs once for each batch of rollouts, until there are enough: only then is it logged.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rlotel import context
from rlotel.integrations.configuration import version
from rlotel.integrations.loops import EVALUATE, Loops, within
from rlotel.integrations.models import Models
from rlotel.integrations.ray import ends
from rlotel.integrations.skyrl.setup import Setup
from rlotel.integrations.skyrl.tables import (
    ASYNCHRONOUS,
    GAUGES,
    LENGTH,
    ROLLOUTS_OF_EVALUATION,
    SCORES,
    STEP,
    TIMERS,
    TOLD,
)
from rlotel.integrations.tables import Timed, scalars
from rlotel.patching import Call
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv.attributes import CheckpointOperation
from rlotel.words import CHECKPOINT, SAMPLE


class Iterations:
    """The iterations of the trainer in this process."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.loops = Loops(recorder, alone=True)
        self.models = Models(recorder)
        self.setup = Setup(None)
        self._trainer: Callable[[], Any] = _nobody
        self.met: list[Callable[[Any], None]] = []
        """What is to be done before a trainer's first timer, when it has got all its parts."""
        self.ending: list[Callable[[], None]] = []
        """What is to be done as an iteration ends."""
        self.timed: dict[str, list[Callable[[], None]]] = {}
        """What is to be done as the timer of a name stops, unless what it timed has failed."""
        self._new = False
        self._logged = True
        self._open: dict[int, Call] = {}

    # The trainer and its configuration.

    @property
    def trainer(self) -> Any:
        """The trainer, from when it is made; without one timers are those of something else, such as SFT.

        It isn't kept alive: Ray takes the GPUs of workers back when the last who knows them is gone.
        """
        return self._trainer()

    def starting(self, overrides: object) -> None:
        """This is the launcher, which may export before SkyRL has been imported and reads its configuration."""
        self._recorder.identify(system="skyrl", system_version=_version(), **Setup(overrides).identity())
        self._recorder.loop_is_elsewhere()

    def launched(self, call: Call) -> None:
        """The launcher connects to Ray; the trainer will be a task of its."""
        self._configure(Setup(call.arguments["cfg"]))
        self._recorder.loop_is_elsewhere()

    def made(self, call: Call) -> None:
        """A trainer is being made, here."""
        self._meet(call.instance, call.arguments["cfg"])

    def trains(self, call: Call) -> None:
        """One begins to train that was made before it was watched, or before another one."""
        if self.trainer is not call.instance:
            self._meet(call.instance, call.instance.cfg)

    def _meet(self, trainer: Any, configuration: object) -> None:
        kinds = {kind.__name__ for kind in type(trainer).__mro__}
        # The setting that says so is no older than 0.3.
        self._configure(Setup(configuration, asynchronous=ASYNCHRONOUS in kinds))
        self.loops.setup = self.setup.phases()
        self.models.look_up(self.setup)
        self.loops.another()
        self._trainer, self._new = weakref.ref(trainer), True
        self._recorder.loop_is_here()

    def _configure(self, setup: Setup) -> None:
        self.setup = setup
        self._recorder.identify(system="skyrl", system_version=_version(), **setup.identity())
        self._recorder.equip(setup.hardware())

    # Timers.

    def started(self, call: Call) -> None:
        """Before `Timer.__enter__`."""
        name = call.instance.message
        if (trainer := self.trainer) is None:
            return
        if self._new:
            self._new = False
            for meet in self.met:
                self._do(meet, trainer)
        if name == STEP:
            self._begin()
        elif (timed := self._timed(name)) is None or self.loops.open(timed, call) is None:
            return
        self._open[id(call.instance)] = call

    def _timed(self, name: str) -> Timed | None:
        timed = TIMERS.get(name)
        pending = timed is not None and timed.operation is not None and self.setup.saves_in_background
        return replace(timed, durable=False) if timed is not None and pending else timed

    def stopped(self, call: Call) -> None:
        """After `Timer.__exit__`, with what went wrong in between, if anything did."""
        opened = self._open.pop(id(call.instance), None)
        if opened is None:
            return
        name, error = call.instance.message, call.args[1]
        if name == STEP:
            self.end(error)
            return
        if error is None:
            for tell in self.timed.get(name, ()):
                self._do(tell)
        opened.error = error
        self.loops.shut(opened)

    def _do(self, what: Callable[..., None], *arguments: object) -> None:
        """A part of what is to be done; if it fails, the rest, such as the end of a phase, is still done."""
        with self._recorder.faults.contain("an iteration of SkyRL"):
            what(*arguments)

    def _begin(self) -> None:
        if self.loops.current is not None and not self._logged:
            self.loops.resume()
        else:
            self.loops.begin(self.trainer.global_step)
            self._logged = False

    def end(self, error: BaseException | None = None) -> None:
        """What the timer of an iteration is around is over."""
        for tell in self.ending:
            self._do(tell)
        self.loops.end(error)

    def stop(self) -> None:
        """Nothing is watched any more, in the middle of whatever is timed."""
        for opened in reversed(self._open.values()):
            if (entered := opened.notes.pop("entered", None)) is not None:
                context.leave(entered)
        self._open = {}
        self.loops.stop()

    def restoring(self, call: Call) -> None:
        """Before the trainer looks for a checkpoint to go on from."""
        call.notes["since"] = self._recorder.now()

    def restored(self, call: Call) -> None:
        """After it has: step 0 is that of a run that starts anew."""
        if call.error is not None or call.result[0]:
            known = {
                attr.CHECKPOINT_OPERATION.name: CheckpointOperation.RESTORE.value,
                attr.CHECKPOINT_TIER.name: self.loops.setup.checkpoint_tier,
                attr.CHECKPOINT_BLOCKING.name: True,
            }
            phase = self._recorder.open_phase(CHECKPOINT, known, at=call.notes["since"])
            self._recorder.close_phase(phase, call.error)

    # Numbers.

    def logged(self, call: Call) -> None:
        """A log call: values of an iteration or of an evaluation, or times alone."""
        data = call.arguments["data"]
        if TOLD not in data:
            return
        known = {key: value for key, value in data.items() if not (key == LENGTH and self.setup.rows_are_turns)}
        self.loops.tell(known, GAUGES)
        self._logged = True
        if not self.setup.asynchronous:
            self.loops.close()

    def evaluated(self, call: Call) -> None:
        """An evaluation has returned its scores, which may never be logged."""
        scores = scalars(call.result)
        self.loops.evaluated(
            {key: score for key, score in scores.items() if not key.startswith(ROLLOUTS_OF_EVALUATION)}, SCORES
        )

    @property
    def evaluating(self) -> bool:
        """Whether this task or thread does what an evaluation asked for."""
        return within(context.current(), EVALUATE)

    def over(self, _call: Call) -> None:
        """Training has ended, and with it the task of Ray that it ran in: all that is known is exported."""
        loop = self.loops.current
        if loop is not None and not self._logged and loop.seconds(SAMPLE) is None:
            self.loops.forget()  # it looked for rollouts, and there were no more
        self.loops.close()
        self._logged, self._open = True, {}
        ray = sys.modules.get("ray")
        if ray is not None and ray.is_initialized():  # it will not ask either this process or those it created
            ends.flush_created(ends.END_WAIT)
            self._recorder.process.flush(ends.END_WAIT)


def _nobody() -> None:
    """Stands for a trainer that is not there."""


def _version() -> str | None:
    return version("skyrl-train" if "skyrl_train" in sys.modules else "skyrl")
