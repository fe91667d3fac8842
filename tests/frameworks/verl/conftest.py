"""Runs of verl's own loops, in processes of their own, and what they reported to a receiver meanwhile."""

import importlib.metadata
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlotel.capture import Capture
from rlotel.receiver import Receiver

PROGRAMS = Path(__file__).parent / "programs"
RELEASES = Path(sys.prefix) / "releases"
INSTALLED = importlib.metadata.version("verl")
LONGEST = 300
"""Seconds that a run may take: Ray starts each of its processes with the whole of verl."""
SETTINGS = ("OTEL_", "RLOTEL_", "RAY_", "VERL_", "PYTHONPATH")


@dataclass(frozen=True)
class Run:
    """A run that has ended."""

    capture: Capture
    lines: list[str]
    """What was received, as OTLP JSON."""
    folder: Path
    output: str

    @property
    def logged(self) -> list[dict[str, float]]:
        """The numbers of every log call, in order."""
        return [line["data"] for line in _lines(self.folder / "logged.jsonl")]

    @property
    def trained(self) -> list[dict[str, float]]:
        """Those that tell of an iteration."""
        return [data for data in self.logged if "timing_s/step" in data]

    def worked(self, what: str) -> float:
        """Seconds that one kind of work took, by its own clock."""
        return sum(float(line["seconds"]) for line in _lines(self.folder / "worked.jsonl") if line["what"] == what)

    def total(self, metric: str, **match: Any) -> float:
        """A counter's or histogram's sum over all processes."""
        points = self.capture.latest(metric, **match)
        return sum(float((point.sum if point.kind == "histogram" else point.value) or 0) for point in points)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def environment(folder: Path, release: str, **more: str) -> dict[str, str]:
    """What a run sees: none of this machine's settings, and one release of verl."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    path = [str(PROGRAMS)] if release == INSTALLED else [str(RELEASES / release), str(PROGRAMS)]
    return {
        **own,
        "PYTHONPATH": os.pathsep.join(path),
        "RUN_FOLDER": str(folder),
        "VERL_LOGGING_LEVEL": "WARN",
        "RAY_ADDRESS": "local",
        "RAY_AUTH_MODE": "disabled",
        "RAY_DEDUP_LOGS": "0",
        "HYDRA_FULL_ERROR": "1",
        **more,
    }


def run(command: list[str], folder: Path, release: str = INSTALLED, **environ: str) -> Run:
    """Run a program to its end, which must be a good one."""
    folder.mkdir(parents=True, exist_ok=True)
    with Receiver(capture=folder / "received.jsonl") as receiver:
        done = subprocess.run(
            [sys.executable, *command],
            env=environment(folder, release, **{"RLOTEL_ENDPOINT": receiver.http_endpoint, **environ}),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-6000:]
        lines = (folder / "received.jsonl").read_text().splitlines()
        return Run(receiver.capture, lines, folder, done.stdout)


V0 = {
    "0.9.1": "v0.py",
    "0.9.0": "v0.py",
    "0.8.0": "v0.py",
    "0.7.1": "v0.py",
    "0.7.0": "v0.py",
    "0.6.1": "v050.py",
    "0.5.0": "v050.py",
}
"""The programs with which the loop of V0 is driven, by release."""


def run_v0(release: str, folder: Path, *overrides: str, **environ: str) -> Run:
    return run([str(PROGRAMS / V0[release]), *overrides], folder, release, **environ)


@pytest.fixture(scope="session", params=V0)
def v0(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Run]:
    """Three iterations of `RayPPOTrainer`, by release."""
    return request.param, run_v0(request.param, tmp_path_factory.mktemp("v0"))


@pytest.fixture(scope="session")
def v1(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three iterations of V1 as a user starts them: the launcher, Ray, the trainer's actor and its workers."""
    folder = tmp_path_factory.mktemp("v1")
    settings = json.loads(
        subprocess.run(
            [sys.executable, "-c", "import common, json; print(json.dumps(common.v1_overrides()))"],
            env=environment(folder, INSTALLED),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
    )
    command = ["-c", "from rlotel.cli import main; main()", "run", "--"]
    return run(
        [*command, sys.executable, "-m", "verl.trainer.main_ppo", *settings],
        folder,
        VERL_USE_EXTERNAL_MODULES="v1",
    )
