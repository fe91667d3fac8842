"""A program: a run of two processes on a node with eight GPUs (NVML is a fake), four of which are ill; it fails.

The launcher trains a few iterations; a worker of the same run, in a process of its own, takes part in them.
"""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import rlotel
from tests.collectors.conftest import BUSY, Driver

SECONDS = 26
"""The driver's error counters are read every 15 s, and twice they must be."""
TICK_S = 0.5
_WORKER = """
import time, rlotel
with rlotel.instrument() as session:
    for _ in range(6):
        with rlotel.train():
            time.sleep(1)
        session.flush()  # a worker would wait for 15 s before it decides who it is
"""


class _Failure(Exception):
    """What the run ends with."""


def _go_on(driver: Driver, ticks: int) -> None:
    """What the GPUs have done after so many ticks."""
    driver.gpu(
        energy_mj=5_000_000 + ticks * 650_000,
        field74=10**9 + round(0.4 * TICK_S * 10**9) * ticks,
        remap_unc=1 + ticks // 4,
    )
    driver.gpu(field138=1000 * ticks, field197=10**6 * ticks)
    driver.gpu(6, field270=round(TICK_S * 10**9) * ticks)  # slowed down by heat all the time
    driver.gpu(2, ecc_unc_vol=2 + ticks)  # memory that goes bad
    if ticks == 8:
        driver.xid(3, 48)
        driver.gpu(5, error=15)  # lost
        driver.gpu(7, mem_used=85_000_000_000)


def main() -> None:
    """Runs it; the capture goes where `RLOTEL_CAPTURE` says."""
    driver = Driver(Path(os.environ["LD_LIBRARY_PATH"]))
    driver.set(gpm_min_ms=0, count=8)
    driver.gpu(**BUSY)
    with suppress(_Failure), rlotel.instrument(gpu=True, gpus=8, peak_flops=1e15) as session:
        session.process.use_gpus("shared", "0,1,2,3,4,5,6,7")
        environment = {**os.environ, **session.process.handover(), "RANK": "1"}
        worker = subprocess.Popen([sys.executable, "-c", _WORKER], env=environment)
        for ticks in range(1, round(SECONDS / TICK_S)):
            with rlotel.loop(), rlotel.train() as train:
                time.sleep(TICK_S)
                _go_on(driver, ticks)
                train.add(steps=1, flops=1e14)
        worker.wait(30)
        raise _Failure


if __name__ == "__main__":
    main()
