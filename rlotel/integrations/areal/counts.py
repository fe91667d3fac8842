"""What one commit says an iteration did: rollouts, tokens and optimizer steps.

AReaL adds up over all ranks that train on different rows, so that none of it depends on how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlotel.integrations.areal.tables import ACTOR, CRITIC, SUPERVISED
from rlotel.integrations.loops import Loops
from rlotel.integrations.tables import scalars
from rlotel.semconv.attributes import Role
from rlotel.words import SAMPLE, TRAIN

FINISHED = "rollout/reward__count"
"""Rollouts that ended since the last commit, whether or not they are trained on yet, or ever."""


def tell(loops: Loops, logged: Mapping[str, Any], finished: float | None) -> None:
    """Add them to the phases of the iteration that is open.

    Args:
        loops: the iterations.
        logged: what was committed.
        finished: rollouts that ended, if the commit does not say.
    """
    known = scalars(logged)
    rows = known.get(f"{ACTOR}n_seqs")
    # n_tokens has padding in it.
    tokens = _product(rows, known.get(f"{ACTOR}seq_len/avg"))
    loops.add(
        SAMPLE,
        samples=rows,
        episodes=known.get(FINISHED, finished),
        prompt_tokens=_product(rows, known.get(f"{ACTOR}prompt_len/avg")),
        completion_tokens=known.get(f"{ACTOR}n_valid_tokens"),
    )
    loops.add(TRAIN, Role.ACTOR.value, steps=_steps(known, f"{ACTOR}update/", ACTOR), tokens=tokens)
    loops.add(TRAIN, Role.CRITIC.value, steps=_steps(known, CRITIC, CRITIC), tokens=tokens)
    for scope in SUPERVISED:
        loops.add(TRAIN, Role.ACTOR.value, steps=_steps(known, scope, None))


def length(logged: Mapping[str, Any]) -> float | None:
    """Tokens that the policy generated for one row, on average."""
    known = scalars(logged)
    rows, generated = known.get(f"{ACTOR}n_seqs"), known.get(f"{ACTOR}n_valid_tokens")
    return generated / rows if rows and generated is not None else None


def _steps(known: Mapping[str, float], scope: str, once: str | None) -> float | None:
    """Optimizer steps: every rank notes each, and once an update what its settings were.

    A step whose gradient is not finite is not taken.
    """
    tried, updates = known.get(f"{scope}grad_norm__count"), 1.0
    if tried is None:
        return None
    if once is None:
        tried = 1.0  # a supervised update is one step
    else:
        updates = known.get(f"{once}eps_clip__count", 0.0)
    taken = known.get(f"{scope}update_successful", 1.0)
    return round(tried / updates * taken) if updates else None


def _product(rows: float | None, mean: float | None) -> float | None:
    """A sum of whole numbers, from their mean, which AReaL computes in single precision."""
    return None if rows is None or mean is None else round(rows * mean)
