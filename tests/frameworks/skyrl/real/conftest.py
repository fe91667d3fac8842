"""Runs of SkyRL's real trainers on a CPU, with engines and workers that only pass time."""

import os
import sys
from pathlib import Path

import pytest

from tests.frameworks import running
from tests.frameworks.running import OFFLINE, Run, release

PROGRAMS = Path(__file__).parent / "programs"
MODEL = "tiny-qwen2"
DYNAMIC = (
    "trainer.algorithm.dynamic_sampling.type=filter",
    "trainer.algorithm.dynamic_sampling.max_sample_batches=30",
    "trainer.algorithm.use_kl_in_reward=true",
    "trainer.eval_interval=-1",
    "trainer.epochs=8",
)


def path() -> list[Path]:
    """What makes a run's programs, and SkyRL where it is not installed, importable."""
    unpacked = release("skyrl")
    return [PROGRAMS, *([] if unpacked is None else [unpacked])]


def environment() -> dict[str, str]:
    """The variables of a process that only imports SkyRL."""
    return {**os.environ, **OFFLINE, "RLOTEL_GPU": "0", "PYTHONPATH": os.pathsep.join(map(str, path()))}


def run(program: str, folder: Path, *arguments: str, status: int = 0, **environ: str) -> Run:
    return running.run(
        [str(PROGRAMS / program), *arguments], folder, path=path(), status=status, RLOTEL_GPU="0", **environ
    )


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the synchronous run has its checkpoints."""
    return tmp_path_factory.mktemp("sync")


@pytest.fixture(scope="session")
def synchronous(folder: Path) -> Run:
    """Three iterations of PPO with a critic, a reference, evaluations and checkpoints."""
    return run(
        "loop.py",
        folder,
        "sync",
        f"trainer.critic.model.path={folder / MODEL}",
        "trainer.algorithm.advantage_estimator=gae",
        "trainer.algorithm.use_kl_loss=true",
    )


@pytest.fixture(scope="session")
def asynchronous(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four iterations beside which rollouts are made."""
    return run("loop.py", tmp_path_factory.mktemp("async"), "async", ITERATIONS="4")


@pytest.fixture(scope="session")
def dynamic(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two iterations with as many attempts as it takes to have enough rollouts that teach something."""
    return run("loop.py", tmp_path_factory.mktemp("dynamic"), "sync", *DYNAMIC, ITERATIONS="2")


@pytest.fixture(scope="session")
def task(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """As a user starts it: a driver, Ray, and the trainer in a task of it."""
    started = "from rlotel.cli import main; main()"
    folder = tmp_path_factory.mktemp("task")
    settings = (
        "trainer.override_entrypoint=task",
        "trainer.algorithm.advantage_estimator=grpo",
        f"trainer.policy.model.path={folder / MODEL}",
        "environment.env_class=add",
    )
    return running.run(
        ["-c", started, "run", "--", sys.executable, "-m", "skyrl.train.entrypoints.main_base", *settings],
        folder,
        path=path(),
        RLOTEL_GPU="0",
        RAY_ADDRESS="local",
        ITERATIONS="2",
    )
