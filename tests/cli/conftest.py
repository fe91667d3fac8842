"""The command `rlotel` in a process of its own, as a user calls it."""

import os
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.export.conftest import receiver, tls_files

__all__ = ["command", "environment", "receiver", "rlotel", "tls_files"]

FOREIGN = ("OTEL_", "RLOTEL_", "RAY_", "SLURM_", "K8S_", "KUBERNETES_", "PYTHONPATH", "http", "HTTP")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """This process's environment without anything that rlotel reads, and a capture file of the test's own."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**own, "RLOTEL_CAPTURE": str(tmp_path / "capture.jsonl")}


@pytest.fixture
def command() -> str:
    """The installed command."""
    return str(Path(sysconfig.get_path("scripts")) / "rlotel")


@pytest.fixture
def rlotel(
    command: str, environment: dict[str, str], tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command to its end: `rlotel("run", …, VARIABLE="value")`."""

    def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command, *arguments],
            env={**environment, **environ},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
        )

    return run
