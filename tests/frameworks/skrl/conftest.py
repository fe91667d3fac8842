"""Runs of skrl's own agents, in processes of their own, and what they reported to a receiver meanwhile."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.running import Run, release, run

PROGRAM = Path(__file__).parent / "programs" / "train.py"
INSTALLED, OLDER = "installed", "2.0.0"
ITERATIONS = 4
ENVS, STEPS = 4, 32
ROWS = ENVS * STEPS
UPDATES = 6
"""Optimizer steps of an iteration of PPO."""
ROUNDS = {"dqn": 1500, "sac": 600}
"""Rounds that take more than a second together."""


def train(
    folder: Path, kind: str = "ppo", iterations: int = ITERATIONS, version: str = INSTALLED, **environ: str
) -> Run:
    """Train one kind of agent with one release."""
    path = None if version == INSTALLED else release("skrl", version)
    if version != INSTALLED and path is None:
        pytest.skip(f"skrl {version} is not unpacked beside this environment: make test-trainers does it")
    return run(
        [str(PROGRAM), str(iterations)], folder, path=[path] if path else [], status=0, KIND=kind, **environ
    )


def last(run: Run) -> dict[str, Any]:
    """What skrl had tracked by the end."""
    known: dict[str, Any] = json.loads((run.folder / "last.json").read_text())
    return known


@pytest.fixture(scope="session", params=[INSTALLED, OLDER])
def ppo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four iterations of PPO, by release."""
    return train(tmp_path_factory.mktemp("ppo"), version=request.param)


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same, with a checkpoint every 40 steps of its environments, and an evaluation afterwards."""
    return train(tmp_path_factory.mktemp("evaluated"), SAVE="40", EVALUATE="1")


@pytest.fixture(scope="session", params=ROUNDS)
def tiny(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Run]:
    """Hundreds of rounds of a step, by algorithm."""
    kind = request.param
    return kind, train(tmp_path_factory.mktemp(kind), kind, ROUNDS[kind])
