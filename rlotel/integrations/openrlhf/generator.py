"""The actor that makes the rollouts of an asynchronous trainer, and evaluates: spans in the trainer's iterations.

How long it takes is told here, since only here it is known; what it makes is counted where it is trained on.
"""

from __future__ import annotations

from rlotel import context
from rlotel.integrations.openrlhf import rows
from rlotel.integrations.openrlhf.setup import Setup
from rlotel.integrations.openrlhf.trainer import drop, is_end
from rlotel.integrations.ray.ends import END_WAIT
from rlotel.patching import Call
from rlotel.phases import Loop, error_type
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import PhaseName, SampleKind
from rlotel.semconv.types import Metric
from rlotel.words import SAMPLE

_EVALUATE = PhaseName.EVALUATE.value


class Generator:
    """What is watched of a `SamplesGenerator` whose trainer is in another process."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._setup = Setup()
        self._iteration: int | None = None
        """The one that is open in the trainer, as far as it has said."""

    def made(self, call: Call) -> None:
        """Before `SamplesGenerator.__init__`."""
        self._setup = Setup(call.arguments["strategy"].args)
        self._recorder.identify(**self._setup.identity())

    def told(self, call: Call) -> None:
        """After `Queue.get`: the trainer says how many iterations it had done as it took the last rollouts.

        A trainer that resumes from a checkpoint says 0 to begin with, whatever that one's number is.
        """
        if type(call.result) is int:
            unknown = call.result == 0 and self._setup.get("ckpt.load_enable")
            self._iteration = None if unknown else call.result + 1

    def put(self, call: Call) -> None:
        """After `Queue.put`: the trainer was told that there are no more rollouts."""
        if self._setup.trains_by_rollouts and is_end(call.arguments["item"]):
            self._recorder.process.flush(END_WAIT)

    def generating(self, call: Call) -> None:
        """Before `generate_samples`; what only comes out of its buffer was made before."""
        if not rows.buffered(call.instance, self._setup.rows):
            self._open(SAMPLE, call)

    def generated(self, call: Call) -> None:
        """After it."""
        if (phase := call.notes.get("phase")) is None:
            return
        try:
            if call.error is None:
                rollouts, _, consumed, _ = call.result
                if not rollouts and not consumed:  # the prompts have run out
                    drop(call, self._recorder)
                    return
                rows.stamp(call.instance, call.result, phase, self._recorder.now())
        finally:
            self._close(m.SAMPLE_DURATION, {attr.SAMPLE_KIND.name: SampleKind.GENERATE.value}, call)

    def evaluating(self, call: Call) -> None:
        """Before `generate_eval_samples`."""
        self._open(_EVALUATE, call)

    def evaluated(self, call: Call) -> None:
        """After it."""
        self._close(m.PHASE_DURATION, {attr.PHASE_NAME.name: _EVALUATE}, call)

    def _open(self, name: str, call: Call) -> None:
        loop: Loop | None = None
        if self._iteration is not None:
            loop = call.notes["loop"] = self._recorder.join_loop(self._iteration)
        known: dict[str, str | int | None] = {}
        if name == SAMPLE:
            known[attr.SAMPLE_KIND.name] = SampleKind.GENERATE.value
            known[attr.SAMPLE_BATCH_SIZE.name] = self._setup.phases().sample_batch_size
        phase = self._recorder.open_phase(name, {}, known, inside=loop)
        if phase is not None:
            call.notes["phase"], call.notes["entered"] = phase, context.enter(phase)

    def _close(self, metric: Metric, attributes: dict[str, str], call: Call) -> None:
        phase = call.notes.pop("phase", None)
        if phase is None:
            return
        context.leave(call.notes.pop("entered"))
        now = self._recorder.now()
        self._recorder.close_phase(phase, call.error, at=now)
        if (loop := call.notes.get("loop")) is not None:
            loop.close(now)
        if (failed := error_type(call.error)) is not None:
            attributes = {**attributes, attr.ERROR_TYPE.name: failed}
        self._recorder.instruments.record(metric, now - phase.started, attributes)
