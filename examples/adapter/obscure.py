"""A trainer that nobody has heard of, and that knows nothing of rlotel: REINFORCE in a corridor, in plain Python.

The agent starts in the middle of a corridor and gets a reward at its right end. What happens in training goes to a
`Board`, as trainers have them, which writes it to a file of JSON lines.
"""

import json
import math
import random
import time
from collections.abc import Mapping
from pathlib import Path

LENGTH, LIMIT, EPISODES = 9, 60, 64
"""Of the corridor, of an episode, and of an iteration."""

Step = tuple[int, int]
"""Where the agent was, and whether it went right."""


class Board:
    """Keeps what is logged."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def log(self, values: Mapping[str, float], step: int) -> None:
        line = {"timestamp": time.time(), "step": step, **values}
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def episode(policy: list[float], dice: random.Random) -> tuple[list[Step], float]:
    """One walk, and its return."""
    place, walked = LENGTH // 2, list[Step]()
    while 0 < place < LENGTH - 1 and len(walked) < LIMIT:
        right = int(dice.random() < 1 / (1 + math.exp(-policy[place])))
        walked.append((place, right))
        place += 2 * right - 1
    return walked, float(place == LENGTH - 1)


def update(policy: list[float], walks: list[tuple[list[Step], float]], rate: float) -> float:
    """One step of the policy gradient; its loss."""
    baseline = sum(reward for _, reward in walks) / len(walks)
    loss = 0.0
    for walk, reward in walks:
        for place, right in walk:
            chance = 1 / (1 + math.exp(-policy[place]))
            loss -= (reward - baseline) * math.log(chance if right else 1 - chance) / len(walks)
            policy[place] += rate * (reward - baseline) * (right - chance) / len(walks)
    return loss


def train(board: Board, iterations: int = 8, seed: int = 0) -> None:
    """Train a policy from nothing."""
    dice, policy, steps = random.Random(seed), [0.0] * LENGTH, 0  # noqa: S311 - it is no secret
    for iteration in range(iterations):
        began = time.perf_counter()
        walks = [episode(policy, dice) for _ in range(EPISODES)]
        rolled = time.perf_counter()
        loss = update(policy, walks, rate=0.5)
        updated = time.perf_counter()
        steps += sum(len(walk) for walk, _ in walks)
        board.log(
            {
                "rollout/return": sum(reward for _, reward in walks) / EPISODES,
                "rollout/length": sum(len(walk) for walk, _ in walks) / EPISODES,
                "rollout/episodes": EPISODES,
                "env_steps": steps,
                "learner/pg_loss": loss,
                "learner/confidence": max(policy),
                "time/rollout_ms": 1000 * (rolled - began),
                "time/update_ms": 1000 * (updated - rolled),
            },
            step=iteration,
        )
        if iteration % 4 == 3:
            walks = [episode(policy, dice) for _ in range(EPISODES)]
            board.log({"eval/return": sum(reward for _, reward in walks) / EPISODES}, step=iteration)
