"""Runs of AReaL's own trainers on a CPU, in processes of their own, and what they reported meanwhile."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.frameworks.running import Run, release, run

PROGRAMS = Path(__file__).parent / "programs"
ROLLOUTS, UPDATES = 4, 2
"""Rollouts that an iteration trains on, and optimizer steps it does so with, as in `programs/ppo.py`."""

Train = Callable[..., Run]


def path() -> tuple[Path, ...]:
    """Where AReaL is, unless it is installed, and what the programs share; workers import that, too."""
    unpacked = release("areal")
    return (PROGRAMS,) if unpacked is None else (unpacked, PROGRAMS)


@pytest.fixture(scope="session")
def train(tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Run a program, as its environment says."""

    def train(*command: str, folder: Path | None = None, status: int = 0, **environ: str) -> Run:
        *launcher, program = command
        folder = folder or tmp_path_factory.mktemp(Path(program).stem)
        return run(
            [*launcher, str(PROGRAMS / program)], folder, path=path(), status=status, RLOTEL_GPU="0", **environ
        )

    return train


@pytest.fixture(scope="session")
def seen(train: Train) -> Run:
    """Four iterations of PPO with a critic, a reference model, two turns, evaluations and checkpoints."""
    return train("ppo.py", ITERATIONS="4", ALGORITHM="ppo", TURNS="2", RECOVER="on")


@pytest.fixture(scope="session")
def resumed(train: Train, seen: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same training goes on for two iterations."""
    files = tmp_path_factory.mktemp("files")
    shutil.copytree(seen.folder / "files", files, dirs_exist_ok=True)
    return train("ppo.py", ITERATIONS="6", ALGORITHM="ppo", TURNS="2", RECOVER="on", FILES=str(files))


@pytest.fixture(scope="session")
def workers(train: Train) -> Run:
    """Three iterations of GRPO with the rollouts of a worker that AReaL's scheduler starts."""
    return train("ppo.py", WORKERS="1")


@pytest.fixture(scope="session")
def ranks(train: Train) -> Run:
    """Two iterations of two ranks that run the loop together."""
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    return train(*launcher, "ppo.py", ITERATIONS="2", AREAL_SPMD_MODE="1")


@pytest.fixture(scope="session")
def broken(train: Train) -> Run:
    """A reward that fails now and then, and an optimizer that fails in the third iteration."""
    return train("ppo.py", status=1, REWARD="wrong", STEP_FAILS_AT=str(2 * UPDATES + 1))


@pytest.fixture(scope="session")
def update(train: Train) -> Run:
    """One update in a training worker, which knows whose it is as workers do."""
    return train("update.py", RLOTEL_ATTEMPT="one", RLOTEL_RUN_ID="counting", RLOTEL_SYSTEM="areal")


@pytest.fixture(scope="session")
def supervised(train: Train) -> Run:
    """Three steps of SFT with an evaluation, in a program of one rank."""
    return train("sft.py", AREAL_SPMD_MODE="1")
