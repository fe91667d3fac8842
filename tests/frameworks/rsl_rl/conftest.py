"""Runs of rsl_rl's own runners, in processes of their own, and what they reported to a receiver meanwhile."""

from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.running import Run, lines_of, release, run

PROGRAM = Path(__file__).parent / "programs" / "train.py"
INSTALLED = "installed"
OLDER = ("5.0.1", "3.0.1", "2.3.3")
ITERATIONS = 4
ENVS, STEPS = 32, 16
UPDATES = 8
"""Optimizer steps of an iteration."""


def train(
    folder: Path, version: str = INSTALLED, *, iterations: int = ITERATIONS, ranks: int = 1, **environ: str
) -> Run:
    """Train with one release, in one process or as torchrun starts several; what it logs goes to `log`."""
    path = None if version == INSTALLED else release("rsl-rl-lib", version)
    if version != INSTALLED and path is None:
        pytest.skip(f"rsl-rl-lib {version} is not unpacked beside this environment: make test-trainers does it")
    command = [str(PROGRAM), str(iterations)]
    if ranks > 1:
        command = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *command]
    environ.setdefault("LOG", str(folder / "log"))
    return run(command, folder, path=[path] if path else [], status=0, **environ)


def logged(run: Run) -> list[dict[str, float]]:
    """What went to TensorBoard, by tag, of each iteration."""
    found: dict[int, dict[str, Any]] = {}
    for line in run.logged:
        found.setdefault(line["step"], {})[line["tag"]] = line["value"]
    return [found[step] for step in sorted(found)]


def ended(run: Run) -> int:
    """Episodes that ended, as the environments counted them."""
    return sum(line["ended"] for line in lines_of(run.folder / "worked.jsonl"))


@pytest.fixture(scope="session", params=[INSTALLED, *OLDER])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four iterations of PPO, by release."""
    return train(tmp_path_factory.mktemp("trained"), request.param)


@pytest.fixture(scope="session")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same by two ranks."""
    return train(tmp_path_factory.mktemp("ranks"), ranks=2)
