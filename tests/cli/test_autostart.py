"""An installed rlotel starts by itself where the environment says so, and nowhere else."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

LOOK = "import sys; print('rlotel.opened' in sys.modules, 'rlotel' in sys.modules)"


Started = Callable[..., list[str]]


@pytest.fixture
def started(environment: dict[str, str]) -> Started:
    """Runs a Python; what it prints, in words."""

    def run(*command: str, **environ: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, *command],
            env={**environment, **environ},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    return run


@pytest.mark.parametrize("value", ["1", "true", "Yes", " on "])
def test_where_it_is_switched_on_it_starts(started: Started, value: str) -> None:
    assert started("-c", LOOK, RLOTEL_ENABLED=value) == ["True", "True"]


@pytest.mark.parametrize("value", ["", "0", "false", "off", "perhaps"])
def test_where_nothing_switches_it_on_not_even_a_module_is_loaded(started: Started, value: str) -> None:
    assert started("-c", LOOK, RLOTEL_ENABLED=value) == ["False", "False"]


@pytest.mark.parametrize(
    ("module", "environ", "expected"),
    [
        ("ray/_private/workers/default_worker.py", {"RLOTEL_ATTEMPT": "1"}, "True"),
        # The supervisor of a submitted job, or a worker that was started before the job was.
        ("ray/_private/workers/default_worker.py", {}, "False"),
        ("ray/_private/workers/setup_worker.py", {"RLOTEL_ATTEMPT": "1"}, "False"),
        ("ray/_private/log_monitor.py", {"RLOTEL_ATTEMPT": "1"}, "False"),
        ("ray/dashboard/dashboard.py", {"RLOTEL_ATTEMPT": "1"}, "False"),
        ("ray/autoscaler/_private/monitor.py", {"RLOTEL_ATTEMPT": "1"}, "False"),
        ("bin/ray", {}, "False"),
        ("ray/train.py", {}, "True"),
    ],
)
def test_of_rays_processes_only_the_workers_of_a_run_take_part(
    started: Started, module: str, environ: dict[str, str], expected: str, tmp_path: Path
) -> None:
    file = tmp_path / module
    file.parent.mkdir(parents=True)
    file.write_text(LOOK)
    assert started("-u", str(file), "--x=1", RLOTEL_ENABLED="true", **environ)[0] == expected
