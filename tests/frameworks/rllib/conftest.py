"""RLlib with all of its work in this process, and with its actors in processes of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlotel.testing import Telemetry, captured
from tests.frameworks.rllib.environments import Steps
from tests.frameworks.running import Run, run

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def ray() -> Iterator[None]:
    """Ray, which RLlib needs for its bookkeeping."""
    import ray

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def telemetry(ray: None) -> Iterator[Telemetry]:
    with captured(frameworks=("rllib",)) as seen:
        Steps.clock = seen.clock
        yield seen
        Steps.clock = None


def rllib(folder: Path, program: str, *settings: str, iterations: int = 3) -> Run:
    """A program that trains with actors, on a Ray of its own."""
    return run(
        [str(PROGRAMS / program), *settings],
        folder,
        RAY_AUTH_MODE="disabled",
        RLOTEL_GPU="0",
        ITERATIONS=str(iterations),
    )


@pytest.fixture(scope="session")
def ppo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three iterations with two env runners, and an evaluation beside the second."""
    folder = tmp_path_factory.mktemp("ppo")
    return rllib(folder, "train.py", "PPO", "evaluate=2", "parallel=true")


@pytest.fixture(scope="session")
def appo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three iterations with two env runners, and a learner in a thread."""
    return rllib(tmp_path_factory.mktemp("appo"), "train.py", "APPO")


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two iterations with two learners, and two env runners of which one breaks and comes back."""
    folder = tmp_path_factory.mktemp("broken")
    settings = ("learners=2", "breaks_at=150", "restart=true", "probe=60")
    return rllib(folder, "train.py", "PPO", *settings, iterations=2)


@pytest.fixture(scope="session")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two trials of two iterations."""
    return rllib(tmp_path_factory.mktemp("tuned"), "trials.py")
