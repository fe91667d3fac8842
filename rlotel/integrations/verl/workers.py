"""The processes that hold the models: what each is asked to do, so that a straggler among them shows.

From 0.9 on every such method of verl's enters a state by name, whether or not anything looks at it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlotel import context
from rlotel.integrations.tables import Timed
from rlotel.integrations.verl.tables import TIMERS
from rlotel.patching import Call
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr

STATES: Mapping[str, Timed] = {
    "actor_update": TIMERS["update_actor"],
    "actor_compute_log_prob": TIMERS["old_log_prob"],
    "ref_compute_log_prob": TIMERS["ref"],
}

GPU_ROLES: Mapping[str, attr.Role] = {
    "actor_update": attr.Role.TRAINER,
    "rollout_generate": attr.Role.ROLLOUT,
    "vllm_generate": attr.Role.ROLLOUT,
    "sglang_generate": attr.Role.ROLLOUT,
}
"""What a state says its process uses its GPUs for; a GPU that is used for both is shared."""


class Workers:
    """The states of this worker."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._told: set[attr.Role] = set()

    def begin(self, call: Call) -> None:
        """A state is entered."""
        name = call.arguments["state_name"]
        if not self._recorder.process.worker:
            return
        if (role := GPU_ROLES.get(name)) is not None and role not in self._told:
            self._told.add(role)
            self._recorder.process.use_gpus(role.value)
        if (state := STATES.get(name)) is None:
            return
        phase = self._recorder.open_phase(state.phase, {attr.ROLE.name: state.role and str(state.role)})
        if phase is not None:
            call.notes["phase"], call.notes["entered"] = phase, context.enter(phase)

    def end(self, call: Call) -> None:
        """It is left."""
        if (phase := call.notes.get("phase")) is not None:
            context.leave(call.notes["entered"])
            self._recorder.close_phase(phase, call.error)
