"""Updates and the forward passes before them: optimizer steps, tokens and model FLOPs, by model."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from rlotel.flops import Architecture, forward_flops, train_flops
from rlotel.integrations.skyrl.iterations import Iterations
from rlotel.integrations.skyrl.tables import ACTOR, CRITIC, LOGPROB, PASSES, ROLES
from rlotel.patching import Call, Patches
from rlotel.words import TRAIN


class Updates:
    """What the trainer in this process does with the rollouts of an iteration."""

    def __init__(self, patches: Patches, iterations: Iterations) -> None:
        self._patches = patches
        self._iterations = iterations
        self._watched: set[type] = set()
        self._lengths: list[int] | None = None
        """Tokens of each row that is trained on, without padding."""
        self._policy_passed = False
        iterations.met.append(self._meet)
        iterations.timed["fwd_logprobs_values_reward"] = [self._passes_done]
        for timer, role in (("policy_train", ACTOR), ("critic_train", CRITIC)):
            iterations.timed[timer] = [partial(self._updated, role)]

    def _meet(self, trainer: Any) -> None:
        """A trainer is about to begin. What calls its workers has no methods to watch before skyrl_train 0.4."""
        kind = type(getattr(trainer, "dispatch", None))
        if kind in self._watched or not hasattr(kind, "optim_step"):
            return
        self._watched.add(kind)
        self._patches.watch_method(kind, "optim_step", after=self._stepped)
        self._patches.watch_method(
            kind, "forward", before=self.passing, after=self.passed, failed=self._iterations.loops.shut
        )

    # Forward passes.

    def looked_at(self, call: Call) -> None:
        """Before all forward passes: the rows are those that will be trained on."""
        self._lengths, self._policy_passed = _lengths(call.arguments["training_input"]), False

    def passing(self, call: Call) -> None:
        """Before a forward pass of one model."""
        timed = PASSES.get(_model(call))
        if timed is not None and not self._iterations.evaluating:
            self._iterations.loops.open(timed, call)

    def passed(self, call: Call) -> None:
        """After it."""
        self._iterations.loops.shut(call)
        self._policy_passed |= _model(call) == "policy"

    def _passes_done(self) -> None:
        models, lengths = self._iterations.models, self._lengths
        if lengths is None:
            return
        policy = _forward(models.policy, lengths)
        loops = self._iterations.loops
        # Some losses need no old log-probabilities, so that there is no pass for them.
        loops.add(LOGPROB, None, flops=policy if self._policy_passed or policy is None else 0)
        for model, flops in (("ref", policy), ("critic", _forward(models.critic, lengths, logits=0))):
            timed = PASSES[model]
            loops.add(timed.phase, timed.role, flops=flops)

    # Updates.

    def _stepped(self, call: Call) -> None:
        """An optimizer has taken a step, unless the norm of its gradient, which is the result, is not finite."""
        skipped = isinstance(call.result, float) and not math.isfinite(call.result)
        if not skipped and (role := ROLES.get(_model(call))) is not None:
            self._iterations.loops.add(TRAIN, role, steps=1)

    def _updated(self, role: str) -> None:
        """A model has been updated with all rows, once for each epoch."""
        lengths, epochs = self._lengths, self._iterations.setup.epochs
        if lengths is None:
            return
        models = self._iterations.models
        flops = _train(models.policy, lengths) if role == ACTOR else _train(models.critic, lengths, logits=0)
        self._iterations.loops.add(
            TRAIN, role, tokens=sum(lengths) * epochs, flops=None if flops is None else flops * epochs
        )


def _model(call: Call) -> str:
    return str(call.args[0] if call.args else call.kwargs.get("model"))


def _lengths(batch: Any) -> list[int] | None:
    """Tokens of each row, of a batch on the CPU; rows at its end were added to have equal shares."""
    mask = batch["attention_mask"]
    if mask.device.type != "cpu":
        return None
    rows = len(mask) - int(batch.metadata.get("pad_size", 0))
    return [int(tokens) for tokens in mask[:rows].sum(dim=-1).tolist()]


def _forward(architecture: Architecture | None, lengths: list[int], logits: int | None = None) -> int | None:
    return None if architecture is None else forward_flops(architecture, lengths, logits=logits).total


def _train(architecture: Architecture | None, lengths: list[int], logits: int | None = None) -> int | None:
    return None if architecture is None else train_flops(architecture, lengths, logits=logits).total
