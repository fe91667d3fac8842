"""Rollouts where they are made: the agents of a rollout engine, what scores them and what answers them.

Each rollout is a span in the trace of the iteration that asked for it, which arrives with Ray's call. Durations
are recorded once for all rollouts that one engine makes for one iteration: as long as any of them was at it.
"""

from __future__ import annotations

import threading
import time
from functools import partial

from rlotel import carrier, context
from rlotel.carrier import Errand
from rlotel.patching import Call, Patches
from rlotel.phases import Loop, Phase, Union
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import PhaseName, Role, SampleKind
from rlotel.words import REWARD, SAMPLE

AGENTS = "openrlhf.utils.agent:"
TOOL = "tool"
"""The phase in which an agent's environment answers, and scores its turn."""


class Engines:
    """The rollouts under way in this engine."""

    def __init__(self, patches: Patches, recorder: Recorder) -> None:
        self._patches = patches
        self._recorder = recorder
        self._lock = threading.Lock()
        self._errands: dict[Errand, tuple[Loop, int]] = {}
        self._watched: set[type] = set()

    def connect(self) -> None:
        """Watch OpenRLHF's agents; what a user makes of them is met as it is used."""
        for kind in ("SingleTurnAgentExecutor", "MultiTurnAgentExecutor"):
            self._patches.watch(f"{AGENTS}{kind}.__init__", after=self._made)
            self._patches.watch(f"{AGENTS}{kind}.execute", before=self._begin, after=self._end, failed=self._end)
        for name in ("_fetch_rewards_via_func", "_fetch_rewards_via_http"):
            self._patches.watch(
                f"{AGENTS}SingleTurnAgentExecutor.{name}",
                before=partial(self._begin_part, REWARD),
                after=self._end_part,
                failed=self._end_part,
            )

    def _made(self, call: Call) -> None:
        self._recorder.process.use_gpus(Role.ROLLOUT.value)
        environment = getattr(call.instance, "agent_instance_cls", None)
        if isinstance(environment, type) and environment not in self._watched:
            self._watched.add(environment)
            self._patches.watch_method(
                environment,
                "step",
                before=partial(self._begin_part, TOOL),
                after=self._end_part,
                failed=self._end_part,
            )

    def _begin(self, call: Call) -> None:
        errand = carrier.arrived_errand()
        if not self._recorder.process.worker or errand.iteration is None:
            return  # nobody who asks for it has an iteration
        with self._lock:
            loop, running = self._errands.get(errand) or (self._open(errand), 0)
            self._errands[errand] = loop, running + 1
        call.notes["errand"] = errand
        name, kind = (PhaseName.EVALUATE.value, None) if errand.evaluates else (SAMPLE, SampleKind.GENERATE.value)
        self._enter(call, self._recorder.open_phase(name, {}, {attr.SAMPLE_KIND.name: kind}, inside=loop))

    def _end(self, call: Call) -> None:
        errand = call.notes.get("errand")
        if errand is None:
            return
        self._end_part(call)
        with self._lock:
            loop, running = self._errands.pop(errand)
            if running > 1:
                self._errands[errand] = loop, running - 1
                return
        loop.close(self._recorder.now())

    def _begin_part(self, name: str, call: Call) -> None:
        here = context.current()
        if isinstance(here, Phase) and here.loop is not None:
            self._enter(call, self._recorder.open_phase(name, inside=here))

    def _end_part(self, call: Call) -> None:
        if (phase := call.notes.get("phase")) is not None:
            context.leave(call.notes["entered"])
            self._recorder.close_phase(phase, call.error)

    def _enter(self, call: Call, phase: Phase | None) -> None:
        if phase is not None:
            call.notes["phase"], call.notes["entered"] = phase, context.enter(phase)

    def _open(self, errand: Errand) -> Loop:
        observe = partial(self._observe, errand.evaluates)
        return Loop(errand.iteration or 0, self._recorder.now(), time.time_ns(), observe)

    def _observe(self, evaluates: bool, union: Union) -> None:
        phase, instruments = union.phase, self._recorder.instruments
        failed = {} if union.error is None else {attr.ERROR_TYPE.name: union.error}
        instruments.record(m.WORKER_DURATION, union.seconds, {attr.PHASE_NAME.name: phase.name, **failed})
        if phase.name == REWARD and not evaluates:
            instruments.record(m.REWARD_DURATION, union.seconds, failed)
