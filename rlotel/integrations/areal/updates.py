"""Updates where they are computed: in AReaL's training workers, so that a straggler among them shows.

The controller times all of an update, and so says nothing of single workers. Each is in the trace of its
iteration, which the weights it starts from tell.
"""

from __future__ import annotations

from functools import partial

from rlotel import context
from rlotel.integrations.areal.iterations import Iterations
from rlotel.integrations.areal.tables import UPDATES
from rlotel.integrations.tables import Timed
from rlotel.patching import Call, Patches
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr


class Updates:
    """The updates of this worker."""

    def __init__(self, recorder: Recorder, iterations: Iterations) -> None:
        self._recorder = recorder
        self._iterations = iterations

    def watch(self, patches: Patches) -> None:
        """Watch whatever trains a model."""
        for target, timed in UPDATES.items():
            before = partial(self._begin, timed)
            patches.watch(target, before=before, after=self._end, failed=self._end, optional=True)

    def _begin(self, timed: Timed, call: Call) -> None:
        if self._iterations.are_here or not self._recorder.process.worker:
            return  # the loop's own timers tell
        loop = self._recorder.join_loop(int(call.instance.engine.get_version()) + 1)
        phase = self._recorder.open_phase(timed.phase, {attr.ROLE.name: timed.role}, inside=loop)
        call.notes["loop"], call.notes["phase"], call.notes["entered"] = loop, phase, context.enter(phase)

    def _end(self, call: Call) -> None:
        if "phase" in call.notes:
            context.leave(call.notes["entered"])
            self._recorder.close_phase(call.notes["phase"], call.error)
            call.notes["loop"].close(self._recorder.now())
