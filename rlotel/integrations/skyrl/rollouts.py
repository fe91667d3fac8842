"""Rollouts: what each call of a generator made, and what environments did meanwhile.

The synchronous trainer makes all rollouts of an iteration in one call, with a timer around it. The asynchronous
one has tasks that make those of one prompt at a time, which belong to the iteration that was open when they began.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from rlotel import context
from rlotel.flops import generation_flops
from rlotel.integrations.ray.ends import END_WAIT
from rlotel.integrations.skyrl.environments import Stepped
from rlotel.integrations.skyrl.iterations import Iterations
from rlotel.integrations.skyrl.tables import BY_POLICY, GENERATE, SCORING, TOOL
from rlotel.integrations.tables import Timed
from rlotel.patching import Call, Patches
from rlotel.phases import Phase
from rlotel.recorder import Recorder
from rlotel.semconv import metrics as m
from rlotel.words import SAMPLE


class _Making:
    """One call of a generator."""

    def __init__(self, stepped: Stepped) -> None:
        self.stepped = stepped
        """When its environments were stepped, and perhaps those of others."""
        self.steps = 0
        self.seconds = 0.0
        """Time in these steps, added up."""
        self._lock = threading.Lock()

    def add(self, timed: Timed, began: float, ended: float, error: BaseException | None) -> None:
        """A step was taken, in any thread."""
        self.stepped.add(timed, began, ended, error)
        with self._lock:
            self.steps += 1
            self.seconds += ended - began


_making: ContextVar[_Making | None] = ContextVar("rlotel_skyrl_making", default=None)
_inside_step: ContextVar[bool] = ContextVar("rlotel_skyrl_inside_step", default=False)


class Rollouts:
    """The rollouts of the trainer in this process."""

    def __init__(self, patches: Patches, recorder: Recorder, iterations: Iterations) -> None:
        self._patches = patches
        self._recorder = recorder
        self._iterations = iterations
        self._watched: set[type] = set()
        self._beside = Stepped()
        """Steps for rollouts that are made beside training."""
        self._carried: dict[str, float] = {}
        """What was counted for earlier iterations, whose rates have been told."""
        iterations.met.append(self._meet)
        iterations.ending.append(self._end)
        iterations.loops.closing.append(self._turns)

    def _meet(self, trainer: Any) -> None:
        """A trainer is about to begin: its generator may be of any class."""
        kind = type(trainer.generator)
        if kind not in self._watched:
            self._watched.add(kind)
            self._patches.watch_method(
                kind, "generate", before=self._generating, after=self._generated, failed=self._failed
            )

    def created(self, call: Call) -> None:
        """An environment was made, of a class that may be the user's."""
        kind = type(call.result)
        if kind not in self._watched:
            self._watched.add(kind)
            self._patches.watch_method(
                kind, "step", before=self._stepping, after=self._stepped, failed=self._stepped
            )

    # Calls of a generator.

    def _generating(self, call: Call) -> None:
        if self._iterations.evaluating or _making.get() is not None:
            return  # a generator may make the rollouts by others, or by itself in parts
        loops = self._iterations.loops
        # A task that was created earlier still has the context it was created in.
        inside = None if isinstance(context.current(), Phase) else loops.current
        own = loops.open(GENERATE, call, inside=inside)
        call.notes["making"] = making = _Making(Stepped() if own is None else self._beside)
        call.notes["token"] = _making.set(making)

    def _generated(self, call: Call) -> None:
        making = self._leave(call)
        if making is None:
            return
        phase = call.notes.get("phase") or self._iterations.loops.latest(SAMPLE)
        try:
            if phase is not None:
                self._tell(making, phase)
                self._add(phase, self._counts(making, call.result))
        finally:
            self._iterations.loops.shut(call)

    def _failed(self, call: Call) -> None:
        making = self._leave(call)
        if making is None:
            return
        own: Phase | None = call.notes.get("phase")
        phase = own or self._iterations.loops.latest(SAMPLE)
        if phase is not None:
            self._tell(making, phase)
        self._iterations.loops.shut(call)
        if own is not None and own.error is not None and self._iterations.setup.asynchronous:
            # The task that this was in ends the whole process next, without asking anyone.
            self._iterations.end(call.error)
            self._recorder.process.flush(END_WAIT)

    def _leave(self, call: Call) -> _Making | None:
        making: _Making | None = call.notes.pop("making", None)
        if making is not None:
            _making.reset(call.notes.pop("token"))
        return making

    def _tell(self, making: _Making, phase: Phase) -> None:
        if making.stepped is not self._beside:
            making.stepped.tell(self._recorder, phase)

    def _counts(self, making: _Making, made: Mapping[str, Any]) -> dict[str, float | None]:
        prompts = [len(ids) for ids in made["prompt_token_ids"]]
        responses = [len(ids) for ids in made["response_ids"]]
        last, policy = made.get("is_last_step"), self._iterations.models.policy
        episodes = len(responses) if last is None else sum(map(bool, last))
        generated = _generated(made, responses, turns=making.steps > episodes)
        return {
            "samples": len(responses),
            "episodes": episodes,
            "prompt_tokens": sum(prompts) + sum(responses) - generated,
            "completion_tokens": generated,
            "steps": making.steps or None,
            "step_seconds": making.seconds if making.steps else None,
            "flops": None if policy is None else generation_flops(policy, prompts, responses).total,
            **_stopped(made.get("stop_reasons")),
        }

    def _add(self, phase: Phase, counts: Mapping[str, float | None]) -> None:
        """Count for the phase, and for the rates of the iteration in which its rollouts were finished."""
        self._recorder.add(phase, **counts)
        if phase.loop is not self._iterations.loops.current:
            for what, amount in counts.items():
                if amount is not None:
                    self._carried[what] = self._carried.get(what, 0.0) + amount

    def _end(self) -> None:
        """An iteration ends."""
        current, carried, self._carried = self._iterations.loops.current, self._carried, {}
        if current is not None:
            self._beside.tell(self._recorder, current)
            for what, amount in carried.items():
                current.count(f"{SAMPLE}.{what}", amount)

    def _turns(self) -> None:
        """All is known of an iteration."""
        current = self._iterations.loops.current
        counts = {} if current is None else current.counts
        steps, episodes = counts.get(f"{SAMPLE}.steps"), counts.get(f"{SAMPLE}.episodes")
        if steps and episodes:
            self._recorder.set(m.ENVIRONMENT_EPISODE_TURNS_MEAN, steps / episodes)
        if episodes and self._iterations.setup.rows_are_turns:
            tokens = counts.get(f"{SAMPLE}.completion_tokens", 0.0)
            self._recorder.set(m.ENVIRONMENT_EPISODE_LENGTH_MEAN, tokens / episodes)

    # Steps of environments, in the task or a thread of it.

    def _stepping(self, call: Call) -> None:
        making = _making.get()
        if making is not None and not _inside_step.get():  # a class may call that of its base
            call.notes["making"], call.notes["token"] = making, _inside_step.set(True)
            call.notes["since"] = self._recorder.now()

    def _stepped(self, call: Call) -> None:
        making: _Making | None = call.notes.get("making")
        if making is None:
            return
        began, ended = call.notes["since"], self._recorder.now()
        _inside_step.reset(call.notes["token"])
        # One that fails was to judge, as far as anyone knows.
        goes_on = call.error is None and not _done(call.result)
        making.add(TOOL if goes_on else SCORING, began, ended, call.error)


def _done(answer: Mapping[str, Any]) -> bool:
    """Whether an environment has said that the rollout is over, as a bool of Python's or of NumPy's."""
    done = answer.get("done")
    return not (done is False or (type(done).__name__ in ("bool", "bool_") and not done))


def _generated(made: Mapping[str, Any], responses: Sequence[int], *, turns: bool) -> int:
    """Tokens that the policy generated; with several turns a response has in it what an environment answered."""
    mean, masks = (made.get("rollout_metrics") or {}).get(BY_POLICY), made.get("loss_masks")
    if mean is not None:  # from 0.3 on
        return round(float(mean) * len(responses))
    if masks is None or not turns:
        return sum(responses)
    # Of one that is left out of the loss, all.
    return sum(list(mask).count(1) or tokens for mask, tokens in zip(masks, responses, strict=True))


def _stopped(reasons: Sequence[str] | None) -> dict[str, float | None]:
    if reasons is None:
        return {}
    return {"truncated": reasons.count("length"), "aborted": reasons.count("abort")}
