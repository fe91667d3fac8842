"""Runs of a framework's own loop, in processes of their own, and what they reported to a receiver meanwhile."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlotel.capture import Capture, SpanNode
from rlotel.otlp_records import SpanRecord
from rlotel.receiver import Receiver

RELEASES = Path(sys.prefix) / "releases"
"""Where releases are unpacked that are not installed here."""
LONGEST = 300
"""Seconds that a run may take."""
SETTINGS = ("OTEL_", "RLOTEL_", "PYTHONPATH", "RANK", "WORLD_SIZE", "LOCAL_RANK", "WANDB_")
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "WANDB_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
}


@dataclass(frozen=True)
class Run:
    """A run that has ended."""

    capture: Capture
    lines: list[str]
    """What was received, as OTLP JSON."""
    folder: Path
    """Where it ran, and what it wrote."""
    output: str
    status: int

    @property
    def logged(self) -> list[dict[str, Any]]:
        """What the framework itself logged, as the program wrote it down: the objects of `logged.jsonl`."""
        return lines_of(self.folder / "logged.jsonl")

    def worked(self, what: str) -> float:
        """Seconds that one kind of work took by a clock of the program's own, in `worked.jsonl`."""
        return sum(
            float(line["seconds"]) for line in lines_of(self.folder / "worked.jsonl") if line["what"] == what
        )

    def total(self, metric: str, **match: Any) -> float:
        """A counter's or histogram's sum over all processes."""
        points = self.capture.latest(metric, **match)
        return sum(float((point.sum if point.kind == "histogram" else point.value) or 0) for point in points)

    def observations(self, metric: str, **match: Any) -> int:
        """How often a duration was observed, in all processes."""
        return sum(int(point.count or 0) for point in self.capture.latest(metric, **match))

    def gauge(self, metric: str, **match: Any) -> list[float]:
        """The values that a gauge was exported with, in order."""
        return [float(point.value or 0) for point in self.capture.points(metric, **match)]

    @property
    def loops(self) -> list[SpanNode]:
        """The root of each iteration's trace, in order."""
        roots = [root for trace in self.capture.traces().values() for root in trace if root.span.name == "rl.loop"]
        return sorted(roots, key=lambda root: root.span.start_ns)


def release(package: str, version: str = "*") -> Path | None:
    """What to put on the path for a release that is unpacked beside this environment; None if it is not there."""
    return next(iter(sorted(RELEASES.glob(f"{package}-{version}"))), None)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON lines file; none if there is no such file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def seconds(span: SpanRecord) -> float:
    """How long a span was."""
    return (span.end_ns - span.start_ns) / 1e9


def phase(span: SpanRecord) -> str:
    """Which phase a span is of."""
    return str(span.attributes.get("rl.phase.name", span.name.removeprefix("rl.")))


def run(
    command: Sequence[str], folder: Path, *, path: Sequence[Path] = (), status: int = 0, **environ: str
) -> Run:
    """Run a Python program to its end, which must be the one that is expected.

    Args:
        command: the program and its arguments, for this Python.
        folder: its working directory, where it writes what it knows.
        path: what is put on `PYTHONPATH`.
        status: its exit status.
        **environ: variables beside those of this machine, without any settings of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    with Receiver(capture=folder / "received.jsonl") as receiver:
        done = subprocess.run(
            [sys.executable, *command],
            env={
                **own,
                **OFFLINE,
                "PYTHONPATH": os.pathsep.join(map(str, path)),
                "RUN_FOLDER": str(folder),
                "RLOTEL_ENDPOINT": receiver.http_endpoint,
                **environ,
            },
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        assert done.returncode == status, done.stdout[-6000:]
        received = folder / "received.jsonl"
        lines = received.read_text().splitlines() if received.exists() else []
        return Run(receiver.capture, lines, folder, done.stdout, done.returncode)
