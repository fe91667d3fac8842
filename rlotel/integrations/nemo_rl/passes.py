"""Passes through a model: updates and log-probabilities, whichever class the policy is of.

The class is known once training begins, so that is when its methods are watched.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rlotel import context
from rlotel.flops import forward_flops, train_flops
from rlotel.integrations.models import Models
from rlotel.integrations.nemo_rl.counts import Counts, lengths_of
from rlotel.integrations.nemo_rl.iterations import Iterations
from rlotel.integrations.tables import Timed
from rlotel.patching import Call, Observer, Patches
from rlotel.recorder import Recorder
from rlotel.semconv.attributes import Role
from rlotel.words import TRAIN


class Passes:
    """What is watched of the models of a training function."""

    def __init__(
        self, patches: Patches, recorder: Recorder, iterations: Iterations, counts: Counts, models: Models
    ) -> None:
        self._patches = patches
        self._recorder = recorder
        self._iterations = iterations
        self._counts = counts
        self._models = models
        self._watched: set[str] = set()
        self.critic: object = None
        """The model that estimates values, if there is one."""

    def follow(self, model: object) -> None:
        """Watch the methods of a model that is trained."""
        for name in ("train", "train_from_meta"):
            self._watch(model, name, self._begin_update, self._updated, self._end)
        for name in ("get_logprobs", "get_logprobs_from_meta"):
            self._watch(model, name, None, self._scored, None)
        for name in ("get_reference_policy_logprobs", "get_reference_policy_logprobs_from_meta"):
            self._watch(model, name, self._begin_reference, self._referred, self._end)
        self._watch(model, "prepare_step", self._counts.asked, None, None)

    def _watch(
        self, model: object, name: str, before: Observer | None, after: Observer | None, failed: Observer | None
    ) -> None:
        """Watch a method where it is defined, once, however many classes inherit it."""
        owner = next((base for base in type(model).__mro__ if name in vars(base)), None)
        if owner is None or "<locals>" in owner.__qualname__ or owner.__module__ not in sys.modules:
            return
        target = f"{owner.__module__}:{owner.__qualname__}.{name}"
        if target not in self._watched:
            self._watched.add(target)
            self._patches.watch(target, before=before, after=after, failed=failed)

    def _open(self, call: Call, timed: Timed) -> None:
        phase = self._iterations.open(timed)
        if phase is not None:
            call.notes["phase"], call.notes["entered"] = phase, context.enter(phase)

    def _end(self, call: Call) -> None:
        entered = call.notes.get("entered")
        if entered is not None:
            context.leave(entered)
            self._recorder.close_phase(call.notes["phase"], call.error)

    def _begin_update(self, call: Call) -> None:
        if self._iterations.current is None or self._iterations.evaluating:
            return
        role = Role.CRITIC.value if call.instance is self.critic else Role.ACTOR.value
        phase = self._iterations.running(TRAIN, role)
        if phase is None:  # RM has no timer around it
            self._open(call, Timed(TRAIN, role))
        else:
            call.notes["phase"] = phase

    def _updated(self, call: Call) -> None:
        phase = call.notes.get("phase")
        if phase is not None:
            lengths = lengths_of(call)
            self._counts.updated(phase, lengths, call.result, self._flops(lengths, call.result))
        self._end(call)

    def _flops(self, lengths: list[int], result: Mapping[str, Any]) -> float | None:
        """Of an update; as NeMo RL counts them where ours are unknown."""
        setup = self._iterations.setup
        if self.critic is not None or (setup is not None and setup.adapted):
            return None  # those of the critic's update are unknown, and so those of both; nobody counts adapters
        if self._models.policy is not None:
            return train_flops(self._models.policy, lengths).total
        return result.get("total_flops")

    def _scored(self, call: Call) -> None:
        phase = self._iterations.running("logprob")
        if phase is not None and self._models.policy is not None:
            self._recorder.add(phase, flops=forward_flops(self._models.policy, lengths_of(call)).total)

    def _begin_reference(self, call: Call) -> None:
        if not self._iterations.evaluating:
            self._open(call, Timed("ref_logprob", Role.REFERENCE.value))

    def _referred(self, call: Call) -> None:
        if "phase" in call.notes and self._models.policy is not None:
            flops = forward_flops(self._models.policy, lengths_of(call)).total
            self._recorder.add(call.notes["phase"], flops=flops)
        self._end(call)
