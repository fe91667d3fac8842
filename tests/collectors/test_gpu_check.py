"""The script that checks rlotel on a real GPU: on the fake driver, and an nvidia-smi made to fit or not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collectors.conftest import Builds

SCRIPT = Path(__file__).parent.parent.parent / "examples" / "gpu_check.py"


def check(**environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--seconds", "1"],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def smi(folder: Path, power: str) -> str:
    """A PATH with an nvidia-smi for the one GPU of the fake."""
    row = f"GPU-00000000-fa4e-4000-8000-000000000000, NVIDIA H100 80GB HBM3, 81559, 0, {power}, 700.00, 34, 1980"
    script = folder / "nvidia-smi"
    script.write_text(f'#!/bin/sh\necho "{row}"\n')
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="there is a GPU here")
def test_without_a_gpu_it_is_skipped() -> None:
    done = check()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("skipped, there is no GPU to check on: no NVIDIA driver")


@pytest.mark.parametrize(("power", "code"), [("96.10", 0), ("[N/A]", 1), ("600.00", 1)])
def test_values_that_nvidia_smi_says_otherwise_are_wrong(
    builds: Builds, tmp_path: Path, power: str, code: int
) -> None:
    control = tmp_path / "control"
    control.write_text("count=1\n")
    done = check(
        LD_LIBRARY_PATH=str(builds.new), FAKE_NVML_CONTROL=str(control), PATH=smi(tmp_path, power), COLUMNS="80"
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "NVIDIA H100 80GB HBM3: peak 989400000000000.0, bandwidth 3350000000000.0" in done.stdout
    assert ("WRONG: power.draw of GPU-00000000" in done.stdout) == bool(code)
    assert "nvmlDeviceGetPowerUsage" in done.stdout
