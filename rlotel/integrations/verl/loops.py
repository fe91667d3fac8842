"""The trainer's iterations: verl's timers become loops and phases, and its log calls tell their numbers.

An iteration is closed when verl logs it, since only then it is known what it did, with the time at which its timer
ended. One that is never logged on its own (fully-async logs several at once) is closed as the next one begins.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from rlotel import context
from rlotel.integrations.loops import NOWHERE, within
from rlotel.integrations.models import Models
from rlotel.integrations.ray import ends
from rlotel.integrations.tables import Timed
from rlotel.integrations.verl import values
from rlotel.integrations.verl.counts import Key, Rows, tell, whole
from rlotel.integrations.verl.numbering import Numbering
from rlotel.integrations.verl.setup import Setup
from rlotel.integrations.verl.tables import NORMAL_ENDS, STEP, TIMERS, TOLD, WAITS_IN
from rlotel.patching import Call
from rlotel.phases import Interval, Loop, Phase
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv.attributes import SampleKind
from rlotel.words import CHECKPOINT, FLOPS, REWARD, SAMPLE, SYNC, TRAIN

_BETWEEN = ("rlotel.", "contextlib", "wrapt.", "verl.utils.")
"""Modules between a trainer and the function that its timers go through."""


class Loops:
    """The iterations of the trainer in this process."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.models = Models(recorder)
        self.numbering = Numbering()
        self._setup = Setup({})
        self._loop: Loop | None = None
        self._over: float | None = None
        """When the open loop's timer ended; its log call is still to come."""
        self._phases: dict[Key, Phase] = {}
        self._rows: Rows | None = None

    # What the configuration says.

    def launched(self, call: Call) -> None:
        """The launcher asks for what its workers need; the trainer will be one of them."""
        self._configure(call.arguments.get("config"))
        self._recorder.loop_is_elsewhere()

    def settled(self, call: Call) -> None:
        """Something is made with the whole configuration that only the trainer's process has."""
        self._configure(call.arguments.get("config"))
        self._recorder.loop_is_here()
        self.models.look_up(self._setup)

    def made(self, call: Call) -> None:
        """V1's trainer is being made: it restores a checkpoint and moves weights before it has a `Tracking`."""
        self.numbering.meet(call.instance)
        self.settled(call)

    def _configure(self, config: Mapping[str, Any] | None) -> None:
        if config is not None:  # to 0.8 the launcher does not pass it
            self._setup = Setup(config)
            self._recorder.equip(self._setup.hardware())
        self._recorder.identify(system="verl", system_version=_version(), **self._setup.identity())

    def over(self, _call: Call) -> None:
        """Training has ended. This actor, and those it created, will be gone without being asked: all export."""
        self._close(None)
        ray = sys.modules.get("ray")
        if ray is not None and ray.is_initialized():
            ends.flush_created(ends.END_WAIT)
            self._recorder.process.flush(ends.END_WAIT)

    # Timers.

    def begin(self, call: Call) -> None:
        """A timer starts."""
        name = call.args[0]
        if name == STEP:
            self._begin_step(call)
        elif (timer := TIMERS.get(name)) is not None:
            self._begin_phase(call, timer)

    def end(self, call: Call) -> None:
        """A timer stops, or what it times failed."""
        if (entered := call.notes.get("entered")) is None:
            return
        context.leave(entered)
        stopped = type(call.error).__name__ in NORMAL_ENDS
        error = None if stopped else call.error
        interval = call.notes["interval"]
        if isinstance(interval, Phase):
            self._recorder.close_phase(interval, error)
            if interval.name == CHECKPOINT and error is None and not self._setup.saves_in_background:
                # Some trainers save after the step, when its iteration is the last one all the same.
                loop = interval.loop or self._loop
                self._recorder.saved(self._setup.checkpoint_tier, None if loop is None else loop.iteration)
        elif stopped:
            self._forget()
        else:
            self._over = self._recorder.now()
            if error is not None:
                self._close(error)

    def _begin_step(self, call: Call) -> None:
        number, again = self.numbering.begin(call.args[1])
        if again and self._loop is not None:
            self._over = None
        else:
            self._close(None)
            self._loop, self._phases, self._rows = self._recorder.open_loop(number), {}, None
        self._enter(call, self._loop)

    def _begin_phase(self, call: Call, timer: Timed) -> None:
        if timer.phase == REWARD and not self._setup.scores_in_trainer(_numbers(_version())):
            return
        self.open(call, timer)

    def open(self, call: Call, timer: Timed) -> None:
        """Open a phase for a watched call, unless it is inside of one of its name already."""
        here = context.current()
        if within(here, timer.phase):
            return
        kind = timer.kind
        if timer.phase == SAMPLE and kind is None:
            waits = _module(_caller()).startswith(WAITS_IN)
            kind = SampleKind.WAIT if waits else SampleKind.GENERATE
        after_step = self._over is not None and not isinstance(here, Phase)
        phase = self._recorder.open_phase(
            timer.phase,
            self._metric_attributes(timer, kind),
            self._span_attributes(timer),
            waits=kind is SampleKind.WAIT,
            inside=NOWHERE if after_step else None,
        )
        if phase is not None and phase.loop is self._loop:
            self._phases[timer.phase, timer.role and str(timer.role)] = phase
        self._enter(call, phase)

    def _enter(self, call: Call, interval: Interval | None) -> None:
        if interval is not None:
            call.notes["interval"] = interval
            call.notes["entered"] = context.enter(interval)

    def _metric_attributes(self, timer: Timed, kind: SampleKind | None) -> dict[str, str | bool | None]:
        if timer.phase == CHECKPOINT:
            return {
                attr.CHECKPOINT_OPERATION.name: timer.operation and timer.operation.value,
                attr.CHECKPOINT_TIER.name: self._setup.checkpoint_tier,
                attr.CHECKPOINT_BLOCKING.name: not self._setup.saves_in_background,
            }
        if timer.phase == SYNC:
            return {attr.SYNC_SOURCE.name: "learner", attr.SYNC_DESTINATION.name: self._setup.rollout}
        if kind is not None:
            return {attr.SAMPLE_KIND.name: kind.value}
        return {attr.ROLE.name: timer.role and str(timer.role)}

    def _span_attributes(self, timer: Timed) -> dict[str, int | None]:
        if timer.phase == SAMPLE:
            return {attr.SAMPLE_BATCH_SIZE.name: self._setup.rows}
        if timer.phase == TRAIN and (updates := self._setup.updates(_MODELS[str(timer.role)])) is not None:
            return {attr.TRAIN_BATCH_SIZE.name: updates.mini_batch}
        return {}

    # Numbers.

    def lengths(self, call: Call) -> None:
        """The lengths of the rows that were trained on are looked up: first without padding, then once more."""
        if self._over is not None and self._rows is None:
            prompts = whole(call.result["prompt_length"].tolist())
            responses = whole(call.result["response_length"].tolist())
            self._rows = Rows(prompts, responses, episodes=len(prompts))

    def batch(self, call: Call) -> None:
        """V1 is about to compute metrics of a batch, whose tags say what is padding."""
        batch = call.arguments["batch"]
        real = [(key, tag) for key, tag in zip(batch.keys, batch.tags, strict=True) if not tag.get("is_padding")]
        self._rows = Rows(
            tuple(int(tag["prompt_len"]) for _, tag in real),
            tuple(int(tag["response_len"]) for _, tag in real),
            # An agent loop may give several rows: a key is the prompt's id, the session and the row.
            episodes=len({key.rsplit("_", 1)[0] for key, _ in real}),
            padding=len(batch.tags) - len(real),
        )

    def logged(self, call: Call) -> None:
        """A log call: values of training, of a validation, of the rollouter, or several of these."""
        data: Mapping[str, Any] = call.arguments["data"]
        values.validation(self._recorder, data)
        if not any(key in data for key in TOLD):
            return
        self.numbering.logged(data)
        values.training(self._recorder, data)
        loop = self._loop
        self._close(None)
        if loop is None or self._recorder.hardware.peak_flops is None or f"{TRAIN}.{FLOPS}" not in loop.counts:
            values.mfu(self._recorder, data)

    def _close(self, error: BaseException | None) -> None:
        loop, over = self._loop, self._over
        if loop is None or over is None:
            return
        if self._rows is not None:
            tell(self._recorder, self._phases, self._rows, self._setup, self.models)
        self._recorder.close_loop(loop, error, at=over)
        self._loop = self._over = None

    def _forget(self) -> None:
        """The trainer looked for one more iteration, and there is none."""
        if self._loop is not None:
            self._recorder.ages.end(self._loop)
            self._loop.abandon()
        self._loop = self._over = None


_MODELS = {"actor": "actor_rollout_ref.actor", "critic": "critic"}


def _version() -> str:
    """verl's, of whichever is loaded."""
    return str(getattr(sys.modules.get("verl"), "__version__", ""))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _caller() -> FrameType | None:
    """Whoever entered the timer: it is given a name and a dictionary, and knows nothing of the trainer."""
    frame = inspect.currentframe()
    while frame is not None and _module(frame).startswith(_BETWEEN):
        frame = frame.f_back
    return frame


def _module(frame: FrameType | None) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))
