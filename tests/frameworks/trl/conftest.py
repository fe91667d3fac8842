"""Runs of TRL's own trainers, in processes of their own, and what they reported to a receiver meanwhile."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.frameworks.running import Run, lines_of, release, run

PROGRAMS = Path(__file__).parent / "programs"
OLDEST = "0.29.1"
ROWS = 8
"""Rollouts of one rank in one micro-batch, as in `programs/tiny.py`; an iteration has two micro-batches."""
DISTRIBUTED = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")

Train = Callable[..., Run]


@pytest.fixture(scope="session")
def train(tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Run a program, with its arguments."""

    def train(
        program: str, *arguments: str, path: tuple[Path, ...] = (), ranks: int = 1, iterations: int = 4
    ) -> Run:
        launcher = DISTRIBUTED if ranks > 1 else ()
        command = [*launcher, str(PROGRAMS / program), *arguments]
        folder = tmp_path_factory.mktemp(Path(program).stem)
        return run(command, folder, path=path, ITERATIONS=str(iterations))

    return train


@pytest.fixture(scope="session")
def grpo(train: Train) -> Run:
    """Four iterations, with an evaluation and a checkpoint after each second one."""
    return train("train.py", "grpo")


@pytest.fixture(scope="session")
def rloo(train: Train) -> Run:
    """Three iterations, each on two batches of rollouts, logged two at a time."""
    never = ("eval_strategy='no'", "save_strategy='no'")
    return train("train.py", "rloo", "logging_steps=2", "steps_per_generation=1", *never, iterations=3)


@pytest.fixture(scope="session")
def ranks(train: Train) -> Run:
    """Two iterations on two ranks, with an evaluation and a checkpoint."""
    return train("train.py", "grpo", ranks=2, iterations=2)


@pytest.fixture(scope="session")
def troubles(train: Train) -> Run:
    """Trainings that break off, see `programs/troubles.py`."""
    return train("troubles.py")


@pytest.fixture(scope="session")
def tools(train: Train) -> Run:
    """Two iterations with a tool and a vLLM server, see `programs/tools.py`."""
    return train("tools.py")


@pytest.fixture(scope="session")
def asynchronous(train: Train) -> Run:
    """Three iterations of AsyncGRPO."""
    return train("asynchronous.py")


@pytest.fixture(scope="session")
def offline(train: Train) -> Run:
    """Two iterations each of SFT, DPO, KTO and a reward model."""
    return train("offline.py")


@pytest.fixture(scope="session")
def oldest(train: Train) -> Run:
    """Four iterations with the oldest release that is followed."""
    path = release("trl", OLDEST)
    if path is None:
        pytest.skip(f"TRL {OLDEST} is not unpacked beside this environment: make test-trainers does it")
    return train("train.py", "grpo", path=(path,))


def timed(run: Run, name: str) -> list[list[float]]:
    """By iteration, seconds that one of TRL's own timers measured in it, in order."""
    lines = [line for line in lines_of(run.folder / "timed.jsonl") if line["name"] == name]
    return [
        [line["seconds"] for line in lines if root.span.start_ns < line["ended_ns"] < root.span.end_ns]
        for root in run.loops
    ]


def trained(run: Run) -> list[dict[str, float]]:
    """What was logged of training, without evaluations and summaries."""
    return [line for line in run.logged if "loss" in line]


def summaries(run: Run) -> list[dict[str, float]]:
    """What was logged at the end of a training."""
    return [line for line in run.logged if "train_runtime" in line]
