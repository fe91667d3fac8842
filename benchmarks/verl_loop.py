"""What rlotel costs verl's real loop: plain, watched, and watched with a collector that is dead.

`make bench-verl`. The trainer of V0 runs on a CPU, and its workers answer at once, so that what is left is what
verl itself does around them: 10 ms, where a real iteration takes many seconds. The difference is what is added to
either. Each kind runs in processes of its own, in turn, several times, and of these the best round counts: what
disturbs a machine only ever makes it slower.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KINDS = ("plain", "watched", "collector dead")
ROUNDS = 3
STEPS = 60
ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "frameworks" / "verl" / "programs"
OVERRIDES = (
    "trainer.device=cpu",
    "trainer.use_v1=False",
    f"trainer.total_training_steps={STEPS}",
    "trainer.total_epochs=100",
    "trainer.save_freq=-1",
    "trainer.logger=[]",
)


def measure() -> dict[str, float]:
    """One run, in this process: seconds of an iteration, by the clock and of the trainer's thread."""
    sys.path.insert(0, str(PROGRAMS))
    import common  # type: ignore[import-not-found]
    import v0  # type: ignore[import-not-found]

    import rlotel

    rlotel.instrument()
    v0.spend = lambda *_: None
    trainer = v0.trainer(common.configuration(*OVERRIDES))
    began, worked = time.perf_counter(), time.thread_time()
    trainer.fit()
    return {
        "an iteration": (time.perf_counter() - began) / STEPS,
        "of its thread": (time.thread_time() - worked) / STEPS,
    }


def in_a_process(kind: str, endpoint: str) -> dict[str, float]:
    """The same in a process of its own, and how long that took from the end of training on."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "RUN_FOLDER": folder,
            "VERL_LOGGING_LEVEL": "ERROR",
            "RLOTEL_ENDPOINT": endpoint,
            "RLOTEL_ENABLED": str(kind != "plain").lower(),
        }
        command = [sys.executable, "-m", "benchmarks.verl_loop", "one"]
        with subprocess.Popen(
            command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            found: dict[str, float] = json.loads(next(line for line in process.stdout if line.startswith("{")))
            began = time.perf_counter()
            process.wait()
        return {**found, "the exit": time.perf_counter() - began}


def main() -> None:
    """Measure all, and print a table."""
    from rlotel.receiver import Receiver

    with Receiver() as receiver, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        dead = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        rounds = [
            {kind: in_a_process(kind, dead if kind == KINDS[-1] else receiver.http_endpoint) for kind in KINDS}
            for _ in range(ROUNDS)
        ]
    print(f"{'':16}" + "".join(f"{kind:>24}" for kind in KINDS))
    for what in rounds[0]["plain"]:
        best = {kind: min(one[kind][what] for one in rounds) for kind in KINDS}
        plain = best["plain"]
        cells = [f"{best[kind] * 1e3:8.1f} ms {(best[kind] - plain) * 1e3:+7.2f} ms" for kind in KINDS]
        print(f"{what:16}" + "".join(f"{cell:>24}" for cell in cells))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print("\n" + json.dumps(measure()), flush=True)
    else:
        main()
