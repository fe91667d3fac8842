"""What rlotel costs the real loops of the other trainers: each with it and without, in one run.

`make bench-trainers`, and `make bench-trainers-heavy` for those whose engines are stand-ins. They train models of
a few thousand parameters on a CPU, so that an iteration takes milliseconds, where a real one takes seconds to
minutes: what is added to either is the difference. Each run is a process of its own, with and without in turn; the
best of each counts, since what disturbs a machine only ever makes it slower.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlotel.receiver import Receiver

ROOT = Path(__file__).resolve().parent.parent
FRAMEWORKS = ROOT / "tests" / "frameworks"
RELEASES = Path(sys.prefix) / "releases"
ROUNDS = 5


@dataclass(frozen=True)
class Training:
    """A program that trains, and prints `seconds=` of its loop last."""

    program: str
    """Its file in `tests/frameworks`."""
    arguments: Sequence[str] = ()
    iterations: int = 0
    path: Sequence[Path] = ()
    environ: Mapping[str, str] = field(default_factory=dict)


TRAININGS: Mapping[str, Training] = {}


def train(training: Training, endpoint: str, *, watched: bool) -> float:
    """Seconds that one training took, in a process of its own.

    Raises:
        RuntimeError: it did not end well.
    """
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(FRAMEWORKS / training.program), *training.arguments],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(map(str, (*training.path, ROOT))),
                "RUN_FOLDER": folder,
                "HF_HUB_OFFLINE": "1",
                "HF_HUB_DISABLE_TELEMETRY": "1",
                "WANDB_MODE": "disabled",
                "OMP_NUM_THREADS": "1",
                "RLOTEL_ENDPOINT": endpoint,
                "RLOTEL_ENABLED": str(watched).lower(),
                **training.environ,
            },
            capture_output=True,
            text=True,
            check=False,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith("seconds=")]
    if done.returncode or not lines:
        raise RuntimeError(f"{training.program} ended with {done.returncode}:\n{done.stdout}{done.stderr}"[-3000:])
    return float(lines[-1].removeprefix("seconds="))


def measure(names: Sequence[str], rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds of an iteration of each, without and with rlotel."""
    found: dict[str, dict[str, float]] = {}
    with Receiver() as receiver:
        for name in names:
            training = TRAININGS[name]
            taken: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(rounds):
                for watched in taken:
                    taken[watched].append(train(training, receiver.http_endpoint, watched=watched))
            best = {watched: min(seconds) / training.iterations * 1e3 for watched, seconds in taken.items()}
            found[name] = {"off_ms": round(best[False], 3), "on_ms": round(best[True], 3)}
            print(_row(name, found[name]), flush=True)
    return found


def _row(name: str, one: Mapping[str, float]) -> str:
    added = one["on_ms"] - one["off_ms"]
    return f"{name:34}{one['off_ms']:10.1f} ms {one['on_ms']:10.1f} ms {added:+8.2f} ms"


def main() -> None:
    """Measure those that are named, or all that can run here, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainers", nargs="*", choices=[*TRAININGS, []], help="which; all by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="runs of each kind (%(default)s)")
    parser.add_argument("--out", type=Path, help="a JSON file that the results are added to")
    options = parser.parse_args()
    print(f"{'an iteration of':34}{'without':>13} {'with':>13} {'added':>11}")
    found = measure(options.trainers or list(TRAININGS), options.rounds)
    if options.out is not None:
        known = json.loads(options.out.read_text()) if options.out.exists() else {}
        options.out.write_text(json.dumps({**known, **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
