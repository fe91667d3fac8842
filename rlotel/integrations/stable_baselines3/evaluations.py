"""Evaluations: time of their own, and scores that never enter the gauges of training."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from rlotel.integrations.loops import Bracket
from rlotel.integrations.rounds import Rounds
from rlotel.integrations.stable_baselines3.tables import EVALUATED, EVALUATION
from rlotel.patching import Call


class Evaluations:
    """Follows `evaluate_policy`, and what is logged of it."""

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds

    def phase(self) -> Bracket:
        """Make a phase of each evaluation; the round that it is called in stands still meanwhile."""
        around = self._rounds.apart(EVALUATION)

        def after(call: Call) -> None:
            outermost = "phase" in call.notes  # it may be watched twice
            around["after"](call)
            if outermost:
                self._rounds.loops.evaluated(_scores(call.result))

        return {**around, "after": after}

    def dumped(self, call: Call) -> None:
        """The logger is about to write what was recorded, and to forget it: of an evaluation, or of training."""
        recorded = call.instance.name_to_value
        if any(key.startswith(EVALUATED) for key in recorded):
            self._rounds.loops.evaluated(recorded, EVALUATED)


def _scores(result: tuple[float, float] | tuple[Sequence[float], Sequence[int]]) -> dict[str, float]:
    """By the names that SB3's callback gives them: from two numbers, or from the episodes' returns and lengths."""
    first, second = result
    if isinstance(first, Sequence) and isinstance(second, Sequence):
        return {"mean_reward": fmean(first), "mean_ep_length": fmean(second)} if first else {}
    return {"mean_reward": first, "std_reward": second}  # type: ignore[dict-item]
