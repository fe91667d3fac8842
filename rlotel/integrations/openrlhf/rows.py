"""The rollouts that an iteration trains on: what they consist of, and how old they are.

What only the process knows that made a rollout is left on it as attributes, which go with it to the trainer,
whichever process that is in; there they are taken off again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rlotel.gates import on_device
from rlotel.integrations.configuration import dig
from rlotel.patching import Call
from rlotel.phases import Phase

MADE = "rlotel_made"
"""On a rollout: when it was made, in nanoseconds since 1970, see `middle`."""
TURNS = "rlotel_turns"
"""On a rollout of an agent: how often it was its turn."""

MOST_SYNCS = 64
"""Versions of the policy that a rollout may be old."""


def middle(phase: Phase, now: float) -> int:
    """The middle of a phase that ends now, in nanoseconds since 1970.

    Rollouts are not made while weights move, so that of two such intervals, seen in two processes, the one with
    the earlier middle was first, even if their clocks differ by a part of a second.
    """
    return phase.started_ns + int((now - phase.started) * 1e9 / 2)


def stamp(generator: Any, result: Sequence[Any], phase: Phase, now: float) -> None:
    """Leave on the rollouts that a call of `generate_samples` made, in this phase, when that was."""
    when = middle(phase, now)
    for rollouts in (result[0], getattr(generator, "_sample_buffer", ())):
        for rollout in rollouts:
            vars(rollout).setdefault(MADE, when)


def turns(call: Call) -> None:
    """After `_process_response_into_experience`: leave on the rollout of an agent how often it was its turn."""
    if dig(call.instance.args, "train.agent_func_path") or dig(call.instance.args, "agent_func_path"):
        vars(call.result)[TURNS] = len(call.arguments["response"]["action_ranges"])


def buffered(generator: object, number: int | None) -> bool:
    """Whether the next `number` rollouts are there: an earlier call made more than one iteration needs."""
    buffer = getattr(generator, "_sample_buffer", None)
    no_more = getattr(generator, "_dataloader_iter", None) is None
    return bool(buffer) and (no_more or len(buffer or ()) >= (number or math.inf))


@dataclass(frozen=True)
class Rows:
    """The rollouts of one iteration; what is not known of all of them is None."""

    prompts: Sequence[int]
    """Tokens of each that were given: of its prompt, and those that an environment answered."""
    completions: Sequence[int]
    """Tokens of each that were generated."""
    rewards: Sequence[float] | None
    made: Sequence[int] | None
    turns: int | None

    @property
    def lengths(self) -> list[int]:
        """Tokens of each."""
        return [given + generated for given, generated in zip(self.prompts, self.completions, strict=True)]

    def same_reward(self, size: int) -> float | None:
        """The share of groups of `size` that all got the same reward, None if rewards are not known yet."""
        if self.rewards is None or size < 2 or len(self.rewards) % size:
            return None
        groups = [self.rewards[first : first + size] for first in range(0, len(self.rewards), size)]
        return sum(len(set(group)) == 1 for group in groups) / len(groups) if groups else None


def read(rollouts: Sequence[Any]) -> Rows | None:
    """Look at rollouts before they are trained on.

    OpenRLHF has their tensors on the CPU. Those of a generator that leaves them elsewhere are not waited for.
    """
    made = [vars(one).pop(MADE, None) for one in rollouts]
    turns = [vars(one).pop(TURNS, None) for one in rollouts]
    if any(on_device(found) for one in rollouts for found in (one.action_mask, one.total_length, one.rewards)):
        return None
    completions = [int(one.action_mask.sum()) for one in rollouts]
    lengths = [int(one.total_length.sum()) for one in rollouts]
    prompts = [length - generated for length, generated in zip(lengths, completions, strict=True)]
    rewards = None
    if all(one.rewards is not None for one in rollouts):
        rewards = [float(one.rewards.sum()) for one in rollouts]
    return Rows(
        prompts, completions, rewards, None if None in made else made, None if None in turns else sum(turns)
    )


class Versions:
    """The versions of the policy, as this trainer has sent them to the engines."""

    def __init__(self) -> None:
        self._sent: deque[int] = deque(maxlen=MOST_SYNCS)

    def sent(self, when: int) -> None:
        """New weights went to the engines, at the middle of that interval."""
        self._sent.append(when)

    def staleness(self, made: Sequence[int]) -> float:
        """How many versions were sent since rollouts were made, in the mean."""
        return sum(sum(sent > when for sent in self._sent) for when in made) / len(made)
