"""Runs of Stable-Baselines3's own algorithms, in processes of their own, and what they reported meanwhile."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.running import Run, lines_of, run

PROGRAM = Path(__file__).parent / "programs" / "train.py"
ITERATIONS = 4
ENVS, STEPS = 2, 32
ROWS = ENVS * STEPS
UPDATES = 3 * ROWS // 16
"""Optimizer steps of an iteration of PPO."""
ROUNDS = {"a2c": 800, "dqn": 1000, "sac": 400}
"""Rounds that take more than a second together."""


def train(folder: Path, kind: str = "ppo", iterations: int = ITERATIONS, **environ: str) -> Run:
    """Train with one kind of algorithm."""
    return run([str(PROGRAM), str(iterations)], folder, path=(), status=0, KIND=kind, **environ)


def last(run: Run) -> dict[str, Any]:
    """What the model knew when it had learnt."""
    known: dict[str, Any] = json.loads((run.folder / "last.json").read_text())
    return known


def ended(run: Run) -> int:
    """Episodes of training that ended, as the environments counted them."""
    return sum(line["what"] == "step" for line in lines_of(run.folder / "ended.jsonl"))


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def calls(run: Run, what: str) -> list[float]:
    """Seconds of each call of the model's method, from outside of what is watched."""
    return [line["seconds"] for line in lines_of(run.folder / "worked.jsonl") if line["what"] == what]


@pytest.fixture(scope="session")
def ppo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four iterations of PPO."""
    return train(tmp_path_factory.mktemp("ppo"))


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same, evaluated every 40 steps of its environments, and once afterwards."""
    return train(tmp_path_factory.mktemp("evaluated"), EVALUATE="1")


@pytest.fixture(scope="session", params=ROUNDS)
def tiny(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Run]:
    """Hundreds of rounds of a few steps, by algorithm."""
    kind = request.param
    return kind, train(tmp_path_factory.mktemp(kind), kind, ROUNDS[kind])
