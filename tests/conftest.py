"""What every test may use."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

from rlotel.testing import telemetry

__all__ = ["program", "telemetry"]

# How long an example takes says more of what else the machine does than of the code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

Program = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Runs Python code in a process of its own, with `environ` added to a plain environment; it must end well."""

    def run(
        code: str, *, timeout: float = 60, check: bool = True, **environ: str
    ) -> "subprocess.CompletedProcess[str]":
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "RLOTEL_", "NEMO_RL_"))}
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={**plain, **environ},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    return run
