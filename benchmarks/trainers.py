"""What rlotel costs the real loops of the other trainers: each with it and without, in one run.

`make bench-trainers`, and `make bench-trainers-heavy` for those whose engines are stand-ins. They train models of
a few thousand parameters on a CPU, so that an iteration takes milliseconds, where a real one takes seconds to
minutes: what is added to either is the difference. Each run is a process of its own, with and without in turn; the
best of each counts, since what disturbs a machine only ever makes it slower. An iteration of RLlib's asynchronous
algorithms is not among them: how long it takes is a setting.
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
from tests.frameworks.running import OFFLINE, RELEASES

ROOT = Path(__file__).resolve().parent.parent
FRAMEWORKS = ROOT / "tests" / "frameworks"
ROUNDS = 3


@dataclass(frozen=True)
class Training:
    """A program that trains, and prints `seconds=` of its loop at the end."""

    label: str
    framework: str
    """Its folder in `tests/frameworks`."""
    program: str
    """Its file in there."""
    iterations: int
    arguments: Sequence[str] = ()
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def command(self) -> list[str]:
        """What is run."""
        return [sys.executable, str(FRAMEWORKS / self.framework / self.program), *self.arguments]

    @property
    def path(self) -> str:
        """`PYTHONPATH`: the program's folder, its stubs, and the release if it is only unpacked."""
        programs = (FRAMEWORKS / self.framework / self.program).parent
        places = (programs, programs.parent / "stubs", *sorted(RELEASES.glob(f"{self.framework}-[0-9]*/")), ROOT)
        return os.pathsep.join(str(place) for place in places if place.is_dir())


_PLAIN = ("eval_strategy='no'", "save_strategy='no'", "logging_steps=1")
_OPENRLHF = (
    "--vllm.num_engines 1 --actor.num_gpus_per_node 1 --ref.num_gpus_per_node 1 --critic.num_gpus_per_node 1 "
    "--reward.num_gpus_per_node 1 --rollout.batch_size 4 --rollout.n_samples_per_prompt 2 "
    "--rollout.micro_batch_size 4 --rollout.max_new_tokens 8 --data.max_len 32 --train.batch_size 4 "
    f"--algo.advantage.estimator group_norm --reward.remote_url {FRAMEWORKS}/openrlhf/real/programs/reward.py"
)

TRAININGS: Sequence[Training] = (
    Training("TRL, GRPO", "trl", "programs/train.py", 60, ("grpo", *_PLAIN)),
    Training("TRL, RLOO", "trl", "programs/train.py", 60, ("rloo", *_PLAIN)),
    Training("RLlib, PPO, 2 env runners", "rllib", "programs/train.py", 20, ("PPO",)),
    Training("rsl_rl, PPO", "rsl_rl", "programs/train.py", 60),
    Training("Stable-Baselines3, PPO", "stable_baselines3", "programs/train.py", 20),
    Training("skrl, PPO", "skrl", "programs/train.py", 40),
    Training("SkyRL, synchronous", "skyrl", "real/programs/loop.py", 20, ("sync", "trainer.eval_interval=-1")),
    Training("SkyRL, fully asynchronous", "skyrl", "real/programs/loop.py", 20, ("async",)),
    Training("AReaL, GRPO", "areal", "real/programs/ppo.py", 20),
    Training(
        "OpenRLHF, GRPO",
        "openrlhf",
        "real/programs/train.py",
        20,
        _OPENRLHF.split(),
        {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"},
    ),
)


def train(training: Training, endpoint: str, *, watched: bool) -> float:
    """Seconds that one training took, in a process of its own.

    Raises:
        RuntimeError: it did not end well.
    """
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            training.command,
            cwd=folder,
            env={
                **os.environ,
                **OFFLINE,
                "PYTHONPATH": training.path,
                "RUN_FOLDER": folder,
                "ITERATIONS": str(training.iterations),
                "RLOTEL_GPU": "0",
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
        raise RuntimeError(f"{training.label} ended with {done.returncode}:\n{done.stdout}{done.stderr}"[-3000:])
    return float(lines[-1].removeprefix("seconds="))


def measure(frameworks: Sequence[str], rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds of an iteration of each, without and with rlotel."""
    found: dict[str, dict[str, float]] = {}
    with Receiver() as receiver:
        for training in TRAININGS:
            if training.framework not in frameworks:
                continue
            taken: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(rounds):
                for watched in taken:
                    taken[watched].append(train(training, receiver.http_endpoint, watched=watched))
            off, on = (min(taken[watched]) / training.iterations * 1e3 for watched in (False, True))
            found[training.label] = {"off_ms": round(off, 3), "on_ms": round(on, 3)}
            print(f"{training.label:34}{off:10.1f} ms {on:10.1f} ms {on - off:+8.2f} ms", flush=True)
    return found


def main() -> None:
    """Measure those that are named, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = sorted({training.framework for training in TRAININGS})
    parser.add_argument("frameworks", nargs="+", choices=known, metavar="FRAMEWORK", help=", ".join(known))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="runs of each kind (%(default)s)")
    parser.add_argument("--out", type=Path, help="a JSON file that the results are added to")
    options = parser.parse_args()
    print(f"{'an iteration of':34}{'without':>13} {'with':>13} {'added':>11}")
    found = measure(options.frameworks, options.rounds)
    if options.out is not None:
        before = json.loads(options.out.read_text()) if options.out.exists() else {}
        options.out.write_text(json.dumps({**before, **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
