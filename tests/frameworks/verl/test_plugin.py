"""Where nothing else starts rlotel, verl itself does as it is imported: if, and only if, it is switched on."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import rlotel
from tests.frameworks.verl.conftest import INSTALLED, environment

PATH = os.pathsep.join([sysconfig.get_path("purelib"), str(Path(rlotel.__file__).parent.parent)])
"""What is installed, without the files in it that Python runs before a program."""
CODE = """
import sys, verl
session = sys.modules.get("rlotel.session")
print("started" if session is not None and session.recorder() is not None else "not started")
"""
ON = {"RLOTEL_ENABLED": "true"}
NAMED = {"VERL_USE_EXTERNAL_MODULES": "rlotel.integrations.verl.plugin"}


def imported(folder: Path, release: str, **environ: str) -> tuple[str, str]:
    """What a Python says that imports verl, on standard output and on standard error."""
    there = environment(folder, release, RLOTEL_CAPTURE=str(folder / "capture.jsonl"), **environ)
    there["PYTHONPATH"] = os.pathsep.join([there["PYTHONPATH"], PATH])
    done = subprocess.run(
        [sys.executable, "-S", "-c", CODE], env=there, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.splitlines()[-1], done.stderr


@pytest.mark.parametrize(
    ("release", "environ", "said"),
    [
        (INSTALLED, ON, "started"),
        (INSTALLED, {}, "not started"),
        (INSTALLED, {"RLOTEL_ENABLED": "false"}, "not started"),
        ("0.8.0", {**ON, **NAMED}, "started"),
        ("0.8.0", ON, "not started"),
    ],
)
def test_verl_starts_it(tmp_path: Path, release: str, environ: dict[str, str], said: str) -> None:
    assert imported(tmp_path, release, **environ)[0] == said


def test_a_wrong_setting_is_said_and_verl_goes_on(tmp_path: Path) -> None:
    said, complaint = imported(tmp_path, INSTALLED, **ON, RLOTEL_EXPORT_INTERVAL="never")
    assert said == "not started"
    assert "RLOTEL_EXPORT_INTERVAL" in complaint
