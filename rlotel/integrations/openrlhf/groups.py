"""The groups of workers that hold the models: what the trainer asks of them, and when it has the answer.

It asks several at once and then waits for one after the other: phases that are open beside each other. Each lasts
from the request to the answer, as the trainer has it; how long its workers took is their own to tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlotel import context
from rlotel.integrations.openrlhf.tables import FORWARD, GROUPS, UPDATE
from rlotel.integrations.tables import Timed
from rlotel.patching import Call
from rlotel.phases import Phase
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv.attributes import Role
from rlotel.words import TRAIN

Key = tuple[str, str | None]
"""A phase's name and role."""


def _key(timed: Timed) -> Key:
    return timed.phase, timed.role and str(timed.role)


_UPDATES = frozenset({"fit", "reload_states"})
"""What workers are asked for as their update begins; the second where models take turns on the same GPUs."""


def role_of(group: object, holder: object) -> Role | None:
    """Whose workers these are, by the attribute of a trainer or of an experience maker that holds them."""
    return next((role for name, role in GROUPS.items() if getattr(holder, name, None) is group), None)


class Groups:
    """The phases that are open because workers are at them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.train_batch_size: int | None = None
        self.phases: dict[Key, Phase] = {}
        """The latest of this iteration, by name and role."""
        self._answers: dict[int, Phase] = {}
        """Phases that end as an answer is read, by the id of the answer."""

    def forget(self) -> None:
        """An iteration begins."""
        self.phases = {}

    # Forward passes, from 0.9 on each through one function.

    def asking(self, call: Call) -> None:
        """Before `RemoteExperienceMaker._dispatch_forward`."""
        role = role_of(call.arguments["group"], call.instance)
        if role is not None:
            self._open(FORWARD[role], call)

    def asked(self, call: Call) -> None:
        """After it: models that share their GPUs have answered by now."""
        phase = self._leave(call)
        if phase is None:
            return
        if call.error is not None or call.arguments["sync_condition"]:
            self._recorder.close_phase(phase, call.error)
        else:
            self._answers[id(call.result)] = phase

    def answered(self, call: Call) -> None:
        """After `RemoteExperienceMaker._flatten_results`, in which the trainer waits for the rest."""
        phase = self._answers.pop(id(call.arguments["refs"]), None)
        if phase is not None:
            self._recorder.close_phase(phase, call.error)

    # Updates.

    def updating(self, method: str, group: object, trainer: object, call: Call) -> None:
        """Before workers are asked for something that may be a part of their update."""
        role = role_of(group, trainer)
        if role is None:
            return
        passing = self.phases.get(_key(FORWARD[role]))
        if method == "empty_cache" and passing is not None:
            # Its forward pass is over: models take turns, and the next one needs the GPUs.
            self._recorder.close_phase(passing)
        if method not in _UPDATES or role not in UPDATE:
            return
        if method == "reload_states":
            self.close(TRAIN, None)
        open_already = self.phases.get((TRAIN, role.value))
        if open_already is None or open_already.ended:
            self._open(UPDATE[role], call)

    def requested(self, call: Call) -> None:
        """After they were."""
        self._leave(call)

    def close(self, name: str | None, error: BaseException | None) -> None:
        """All answers are here, or none will come: end what is open of that name, or of any."""
        for phase in self.phases.values():
            if name is None or phase.name == name:
                self._recorder.close_phase(phase, error)
        self._answers = {key: phase for key, phase in self._answers.items() if not phase.ended}

    def _open(self, timed: Timed, call: Call) -> None:
        span: Mapping[str, Any] = {}
        if timed.phase == TRAIN:
            span = {attr.TRAIN_BATCH_SIZE.name: self.train_batch_size}
        phase = self._recorder.open_phase(timed.phase, {attr.ROLE.name: timed.role and str(timed.role)}, span)
        if phase is not None:
            self.phases[_key(timed)] = phase
            call.notes["phase"], call.notes["entered"] = phase, context.enter(phase)

    def _leave(self, call: Call) -> Phase | None:
        """What workers are asked for now belongs to what is around it again."""
        phase: Phase | None = call.notes.pop("phase", None)
        if phase is not None:
            context.leave(call.notes.pop("entered"))
        return phase
