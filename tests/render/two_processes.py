"""A program: a run of two processes on a node with eight GPUs (NVML is a fake), some of which are ill.

The launcher trains a few iterations; a worker of the same run, in a process of its own, takes part in one.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import rlotel
from tests.collectors.conftest import BUSY, Driver

SECONDS = 8
_WORKER = """
import time, rlotel
with rlotel.instrument() as session:
    for _ in range(6):
        with rlotel.train():
            time.sleep(1)
        session.flush()  # a worker would wait for 15 s before it decides who it is
"""


def main() -> None:
    """Runs it; the capture goes where `RLOTEL_CAPTURE` says."""
    driver = Driver(Path(os.environ["LD_LIBRARY_PATH"]))
    driver.set(gpm_min_ms=0, count=8)
    driver.gpu(**BUSY)
    with rlotel.instrument(gpu=True, gpus=8, peak_flops=1e15) as session:
        session.process.use_gpus("shared", "0,1,2,3,4,5,6,7")
        environment = {**os.environ, **session.process.handover(), "RANK": "1"}
        worker = subprocess.Popen([sys.executable, "-c", _WORKER], env=environment)
        end = time.monotonic() + SECONDS
        ticks = 0
        while time.monotonic() < end:
            with rlotel.loop(), rlotel.train() as train:
                time.sleep(0.5)
                ticks += 1
                driver.gpu(
                    energy_mj=5_000_000 + ticks * 650_000, field74=10**9 * (1 + ticks), ecc_unc_vol=2 + ticks
                )
                driver.gpu(remap_unc=1 + ticks // 4, field138=1000 * ticks, field197=10**6 * ticks)
                train.add(steps=1, flops=1e14)
            if ticks == 4:
                driver.xid(3, 48)
        worker.wait(30)


if __name__ == "__main__":
    main()
