"""The trainer's iterations: AReaL's timers become phases, and its commits end iterations and tell their numbers.

There is no timer around an iteration: it goes from one commit to the next. Since nothing says that a commit was
the last one, it is opened by its first timer, with the time at which the one before it ended.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rlotel.handover import DEFAULTS
from rlotel.integrations import tables as shared
from rlotel.integrations.areal import counts
from rlotel.integrations.areal.setup import Setup, single_program
from rlotel.integrations.areal.tables import (
    EVALUATIONS,
    GAUGES,
    OCCASIONAL,
    OF_ROLES,
    OF_ROLLOUTS,
    OFFLOAD,
    PENALTY,
    POLICY,
    TIMERS,
    WEIGHTS,
)
from rlotel.integrations.configuration import dig
from rlotel.integrations.loops import Loops
from rlotel.integrations.tables import Timed
from rlotel.patching import Call, Patches
from rlotel.recorder import Recorder
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import KlReference

_SETTINGS = {
    "system": "RLOTEL_SYSTEM",
    "system_version": "RLOTEL_SYSTEM_VERSION",
    "algorithm": "RLOTEL_ALGORITHM",
    "model": "RLOTEL_MODEL",
    "environment": "RLOTEL_ENVIRONMENT",
}
"""The variables that tell a worker whom it works for."""


class Iterations:
    """The iterations of the trainer in this process: the controller, or one of several ranks."""

    def __init__(self, patches: Patches, recorder: Recorder) -> None:
        self._patches = patches
        self._recorder = recorder
        self.loops = Loops(recorder)
        self._setup: Setup | None = None
        """None in a process that runs no loop."""
        self._config: object = None
        self._since: float | None = None
        """When the iteration began whose first timer is still to come."""
        self._next = 1
        self._asked: Call | None = None
        """The timer of something that may not be due."""
        self._finished: float | None = None

    @property
    def are_here(self) -> bool:
        """Whether this process runs the loop, as the only one or as one of its ranks."""
        return self._setup is not None

    # What the configuration says.

    def made(self, call: Call) -> None:
        """A trainer is being made, which will start its workers."""
        self._settle(call.arguments["config"])
        self.loops.another()
        if not single_program() and self._setup is not None:
            self._tell_workers(self._setup)

    def logs(self, call: Call) -> None:
        """A logger is being made: in a loop that has no trainer, the first who knows the configuration."""
        self._settle(call.arguments["config"])

    def _settle(self, config: object) -> None:
        if self._config is config:
            return
        if self._setup is not None:
            # Of what a loop without a trainer left when it broke off, nothing is the next one's.
            self.loops.forget()
            self._since, self._next, self._finished = None, 1, None
            self.loops.another()
        self._config, setup = config, Setup(config)
        self._setup = setup
        recorder, known = self._recorder, self.loops.setup
        recorder.identify(**setup.identity())
        recorder.equip(setup.hardware())
        known.sample_batch_size, known.train_batch_size = setup.rollouts, setup.update_rows
        known.sync_destination, known.checkpoint_tier = setup.engine, setup.checkpoint_tier
        if self.loops.reports:
            recorder.loop_is_here()

    def _tell_workers(self, setup: Setup) -> None:
        """Workers are commands that inherit this process's environment."""
        told = self._recorder.process.handover()
        settings: dict[str, str] = json.loads(told[DEFAULTS])
        found = {_SETTINGS[part]: value for part, value in setup.identity().items() if value}
        told[DEFAULTS] = json.dumps({**found, **settings}, sort_keys=True)
        for name, value in told.items():
            self._patches.set_item(os.environ, name, value)

    # Where it starts and ends.

    def trains(self, call: Call) -> None:
        """Training begins, or goes on after what was recovered."""
        if (config := getattr(call.instance, "config", None)) is not None:
            self._settle(config)
        self._next = _after(getattr(call.instance, "recover_info", None)) or 1
        self._since = self._recorder.now()

    def recovered(self, call: Call) -> None:
        """There was a checkpoint, or there was none; who has no trainer goes on after it, too."""
        self._next = _after(call.result) or self._next

    def over(self, call: Call) -> None:
        """Training has ended, or broke off."""
        if call.error is None:
            self.loops.forget()
        else:
            self.loops.end(call.error)
        self._since = None

    # Timers.

    def started(self, call: Call) -> None:
        """A timer starts."""
        name = str(call.arguments["key"])
        if self._setup is None or (timed := self._timed(name, self._setup)) is None:
            return
        if self.loops.current is None:
            if self._since is None and timed.phase == OFFLOAD:
                return  # the trainer makes room before it trains
            self.loops.begin(self._next, at=self._since)
        if name in OCCASIONAL:
            call.notes["asked"] = timed
            self._asked = call
        else:
            self.loops.open(timed, call)

    def stopped(self, call: Call) -> None:
        """It stops."""
        if self._asked is call:
            self._asked = None
        self.loops.shut(call)

    def saves(self, call: Call) -> None:
        """The weights of a model are to be saved, if they are due; those of the critic are so on their own."""
        if self._asked is not None:
            self._asked.notes["model"] = call.arguments["name"]

    def checked(self, call: Call) -> None:
        """It was looked up whether something is due."""
        asked = self._asked
        if call.result and asked is not None and "timed" not in asked.notes:
            timed: Timed = asked.notes["asked"]
            of_policy = asked.notes.get("model", POLICY) == POLICY
            self.loops.open(timed if of_policy else replace(timed, durable=False), asked)

    def _timed(self, name: str, setup: Setup) -> Timed | None:
        if name == WEIGHTS:
            return setup.weights
        if name.endswith(OF_ROLES):
            return Timed(OFFLOAD)
        return OCCASIONAL.get(name) or TIMERS.get(name)

    # Numbers.

    def collected(self, call: Call) -> None:
        """The controller has asked its rollout workers for something: perhaps what they counted.

        What it makes of that, and commits, has no counts.
        """
        if call.arguments["method"] != "export_stats":
            return
        for stats in call.result:
            if (finished := shared.scalars(stats).get(counts.FINISHED)) is not None:
                self._finished = (self._finished or 0.0) + finished

    def commits(self, call: Call) -> None:
        """The numbers of an iteration are logged."""
        data = call.arguments["data"]
        logged = dict(item for part in ([data] if isinstance(data, Mapping) else data) for item in part.items())
        finished, self._finished = self._finished, None
        counts.tell(self.loops, logged, finished)
        self.loops.tell(logged, GAUGES)
        if self._setup is not None and self._setup.penalty:
            reference = shared.kl(KlReference.REFERENCE, scale=-1.0 / self._setup.penalty)
            self.loops.tell(logged, {PENALTY: reference})
        if self.loops.reports and (length := counts.length(logged)) is not None:
            self._recorder.set(m.ENVIRONMENT_EPISODE_LENGTH_MEAN, length)
        self._evaluated(logged)

    def _evaluated(self, logged: Mapping[str, Any]) -> None:
        for prefix in EVALUATIONS:
            means = {key.removesuffix("/avg"): value for key, value in logged.items() if key.endswith("/avg")}
            self.loops.evaluated(means, prefix)
        of_rollouts = {key: value for key, value in logged.items() if not key.endswith("__count")}
        self.loops.evaluated(of_rollouts, OF_ROLLOUTS)

    def committed(self, call: Call) -> None:
        """They have been logged: the next iteration begins."""
        self.loops.end(call.error)
        self.loops.close()
        self._since = self._recorder.now()
        self._next = int(call.arguments["global_step"]) + 2


def _after(recovered: object) -> int | None:
    """The iteration that follows what was recovered; AReaL counts them from 0."""
    step = dig(recovered, "last_step_info.global_step")
    return None if step is None else int(step) + 2
