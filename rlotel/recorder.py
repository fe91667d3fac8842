"""What happens in a run is told to the recorder: loops and phases that begin and end, counts and values.

It is what the public calls and every integration talk to. Nothing here raises into its caller, does I/O or waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rlotel import context, derived
from rlotel.ages import Ages
from rlotel.checkpoints import Checkpoints
from rlotel.clock import Clock
from rlotel.config import Config
from rlotel.counting import Counting
from rlotel.derived import Hardware
from rlotel.errors import Faults, contained, log
from rlotel.identity import Identity
from rlotel.instruments import NONE, Attributes, Instruments, Value
from rlotel.iterations import Iterations
from rlotel.labels import Labels
from rlotel.phases import Interval, Loop, Phase, Union, error_type
from rlotel.process import Process
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.types import Metric
from rlotel.tracing import Tracing
from rlotel.words import BYTES, CHECKPOINT, LOOP, OTHER, TRAIN, WORDS

SpanValue = str | bool | int | float


class Recorder:
    """The recording half of a session; safe in any thread.

    Args:
        config: the session's settings.
        identity: who the telemetry speaks of; the first loop freezes it.
        instruments: where metrics go.
        tracing: where spans go.
        faults: where our own errors go.
        clock: what durations and timestamps are read from.
        process: what this process is in its run.
        freeze: called as a loop begins: with the first, identity is settled and exporting starts.
        stir: called as a phase begins: a process that had nothing to say so far has something now.
        settle: called as this rank takes part in a loop that another one reports: identity is settled for it.
    """

    def __init__(
        self,
        config: Config,
        identity: Identity,
        instruments: Instruments,
        tracing: Tracing,
        faults: Faults,
        clock: Clock,
        process: Process,
        freeze: Callable[[], None],
        stir: Callable[[], None],
        settle: Callable[[], None],
    ) -> None:
        self.hardware = Hardware(config.gpus, config.peak_flops, peak_bandwidth=config.peak_bandwidth)
        self.identity = identity
        self.instruments = instruments
        self.faults = faults
        self.process = process
        self._tracing = tracing
        self._clock = clock
        self._freeze = freeze
        self._stir = stir
        self._settle = settle
        self._labels = Labels(instruments)
        self.ages = Ages(instruments, self.now)
        self.checkpoints = Checkpoints(instruments, self._labels, self.now, self.ages.intervals)
        self.reset()

    def reset(self) -> None:
        """Forget what is open and done, as a forked child must."""
        self.ages.reset()
        self.checkpoints.reset()
        self.used = False
        """Whether this process ever had something to do with training: a loop, a phase, workers."""
        self.iterations = Iterations(self.instruments)
        self._counting = Counting(self.instruments)

    def now(self) -> float:
        """The moment, in seconds, as `at` takes it."""
        return self._clock.monotonic()

    @contained
    def identify(self, **found: object) -> None:
        """Tell what a framework's configuration says of the run; see `Identity.offer`."""
        if not self.identity.offer(**found):
            log.debug("identity came after the first loop and is not used: %s", sorted(found))

    @contained
    def equip(self, found: Hardware) -> None:
        """Tell what a framework knows of the run's GPUs; what was known before, or set by the user, wins."""
        was = self.hardware
        gpus, peak = was.gpus or found.gpus, was.peak_flops or found.peak_flops
        bandwidth = was.peak_bandwidth or found.peak_bandwidth
        self.hardware = Hardware(gpus, peak, {**found.gpus_of, **was.gpus_of}, bandwidth)

    @contained
    def loop_is_here(self) -> None:
        """Tell that this process runs the loop, before the first: identity is settled, its metrics begin."""
        self._freeze()

    @contained
    def loop_is_elsewhere(self) -> None:
        """Tell that another process runs the loop: this one, the launcher, does not report how far it got."""
        self.used = True
        self.process.loop = "elsewhere"
        self.ages.stand_back()

    @contained
    def open_loop(self, iteration: int | None = None, *, at: float | None = None) -> Loop:
        """An iteration begins, or began `at` an earlier `now()`. Without a number it is the one after the last."""
        self.used = True
        self._freeze()
        number = self.iterations.begin(iteration, alone=self.ages.latest_loop() is None)
        loop = Loop(number, *self._when(at), self._observe)
        self._tracing.begin_loop(loop, self.iterations.returns)
        self.ages.begin(loop)
        return loop

    @contained
    def join_loop(self, iteration: int, returns: int = 0, *, at: float | None = None) -> Loop:
        """This rank's part of an iteration begins that rank 0 reports: spans in its trace, `rl.worker.duration`.

        Its `close()` ends it. `returns` counts how often an iteration began that had been before.
        """
        self.used = True
        self._settle()
        loop = Loop(iteration, *self._when(at), self._observe_part)
        self._tracing.join_loop(loop, returns)
        return loop

    @contained
    def close_loop(self, loop: Loop, error: BaseException | None = None, *, at: float | None = None) -> None:
        """An iteration ends, or ended `at` an earlier `now()`; what follows from it as a whole is recorded.

        A framework that tells what it counted only after an iteration is closed then, with the time it ended.
        """
        if loop.ended:
            return
        now, _ = self._when(at)
        seconds = now - loop.started
        loop.error = error_type(error)
        self.ages.end(loop)
        loop.close(now)
        self._record_duration(m.LOOP_DURATION, LOOP, seconds, NONE, loop.error)
        with self.faults.contain("what follows from a loop"):
            derived.record(loop, seconds, self.hardware, self.instruments)
        self.instruments.loop_finished()
        self.iterations.end(failed=error is not None)
        if error is None:
            self.ages.progress()
        self._tracing.end(loop, loop.started_ns + int(seconds * 1e9))

    @contained
    def open_phase(
        self,
        name: str,
        metric_attributes: Mapping[str, Value | None] = NONE,
        span_attributes: Mapping[str, SpanValue | None] = NONE,
        *,
        waits: bool = False,
        inside: Interval | None = None,
        at: float | None = None,
    ) -> Phase:
        """A phase begins, or began `at` an earlier `now()`.

        Args:
            name: one of the five, `checkpoint`, or any other word, which becomes `rl.phase.name`.
            metric_attributes: for its duration and its span; None is left out.
            span_attributes: for its span only (batch sizes, counts); None is left out.
            waits: whether the trainer only stands waiting meanwhile, which is idle time.
            inside: the loop or phase it belongs to, where the caller knows better than the context.
            at: when it began, if not now.
        """
        self.used = True
        self._stir()
        word = WORDS.get(name, OTHER) if type(name) is str else OTHER
        attributes = self._labels.typed(metric_attributes)
        if word.named:
            name = self._labels.phase_name(name)
            attributes[attr.PHASE_NAME.name] = name
        around = inside or self.around()
        loop = around if isinstance(around, Loop) else around.loop if around else None
        iteration = {attr.LOOP_ITERATION.name: loop.iteration} if loop is not None else {}
        phase = Phase(
            name,
            *self._when(at),
            loop=loop,
            word=word,
            metric_attributes=attributes,
            span_attributes={**self._labels.typed(span_attributes), **attributes, **iteration},
            waits=waits,
            inside=loop if around is None or around.ended else around,
        )
        if loop is not None:
            loop.begin(phase)
        self._tracing.begin_phase(phase)
        if not self.process.worker:
            self.ages.begin(phase)
            if name == CHECKPOINT:
                self.checkpoints.begin(phase)
        return phase

    @contained
    def close_phase(self, phase: Phase, error: BaseException | None = None, *, at: float | None = None) -> None:
        """A phase ends, or ended `at` an earlier `now()`; it is observed with its loop, or at once without one."""
        if phase.ended:
            return
        now, _ = self._when(at)
        seconds = now - phase.started
        phase.ended = True
        phase.error = error_type(error)
        self.ages.end(phase)
        if phase.loop is not None:
            phase.loop.end(phase, now)
        elif self.process.worker:
            self._record_part(phase, seconds, phase.error)
        else:
            self._record_duration(phase.word.duration, phase.name, seconds, phase.metric_attributes, phase.error)
        if phase.name == CHECKPOINT and not self.process.worker:
            self.checkpoints.end(phase)
        if phase.name == TRAIN and error is None:
            self._progress()
        if phase.word.size is not None and BYTES in phase.counts:
            self.instruments.record(phase.word.size, phase.counts[BYTES], phase.metric_attributes)
        phase.results = self._labels.typed(phase.told)
        self._tracing.end(phase, phase.started_ns + int((phase.before + seconds) * 1e9))

    @contained
    def add(self, phase: Phase, **counts: object) -> None:
        """Count what a phase did: a counter of its own, a number of its loop, or both; None is left out."""
        for what, value in counts.items():
            if value is not None and (amount := self.instruments.amount(what, value)) is not None:
                self._counting.add(phase, what, amount)
                if phase.name == TRAIN and what == "steps":
                    self._progress()

    @contained
    def set(
        self, metric: Metric, value: object, attributes: Attributes = NONE, *, of: Interval | None = None
    ) -> None:
        """Set a gauge of the model; `of` is the phase it was told in, whose role it is of."""
        role = of.metric_attributes.get(attr.ROLE.name) if isinstance(of, Phase) else None
        self.instruments.set(metric, value, attributes if role is None else {**attributes, attr.ROLE.name: role})

    @contained
    def saved(self, tier: str | None, step: int | None) -> None:
        """A checkpoint is durable: its age starts anew, and its step is the one to come back to."""
        self.checkpoints.durable(tier, step)

    def _when(self, at: float | None) -> tuple[float, int]:
        now, wall_ns = self._clock.monotonic(), self._clock.wall_ns()
        return (now, wall_ns) if at is None else (at, wall_ns - int((now - at) * 1e9))

    def _observe(self, union: Union) -> None:
        phase = union.phase
        self._record_duration(phase.word.duration, phase.name, union.seconds, phase.metric_attributes, union.error)

    def _observe_part(self, union: Union) -> None:
        self._record_part(union.phase, union.seconds, union.error)

    def _record_part(self, phase: Phase, seconds: float, error: str | None) -> None:
        failed = {} if error is None else {attr.ERROR_TYPE.name: error}
        known = {**phase.metric_attributes, attr.PHASE_NAME.name: phase.name, **failed}
        self.instruments.record(m.WORKER_DURATION, seconds, known)

    def _record_duration(
        self, metric: Metric, name: str, seconds: float, attributes: Attributes, error: str | None
    ) -> None:
        if error is not None:
            attributes = {**attributes, attr.ERROR_TYPE.name: error}
            self.instruments.add(m.PHASE_FAILURES, 1, {attr.PHASE_NAME.name: name})
        self.instruments.record(metric, seconds, attributes)

    def _progress(self) -> None:
        if not self.process.worker:
            self.ages.progress()

    def around(self) -> Interval | None:
        """The loop or phase that a phase which begins here is inside of, if any.

        A thread that outlives the loop it was started in still carries that one: it works for the present one now.
        """
        here = context.current()
        if here is not None:
            loop = here if isinstance(here, Loop) else here.loop
            if loop is not None and not loop.ended:
                return here
        return self.ages.latest_loop()
