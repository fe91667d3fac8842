"""`python -m benchmarks.gpu_poll`: what one reading of a node's GPUs costs, next to reading them by hand.

Where there is no driver, the fake one of the tests is built and read: then it is the cost of what runs in Python,
and the driver's own comes on top. nvitop is measured too where it is installed.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import logging
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import Row, Work, calls
from rlotel.collectors.keeper import PERIOD
from rlotel.collectors.nvml import Nvml
from rlotel.collectors.sampling import Sampler

TIMES = 20


def driver() -> str:
    """Which driver is read; a fake one is loaded where there is no other."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        from tests.collectors.conftest import BUSY

        source = Path(__file__).parent.parent / "tests" / "collectors" / "fake_nvml.c"
        with tempfile.TemporaryDirectory() as folder:
            library = str(Path(folder) / "libnvidia-ml.so.1")
            shared = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libnvidia-ml.so.1"]
            subprocess.run(["cc", *shared, "-o", library, str(source), "-lpthread"], check=True)
            fake = ctypes.CDLL(library)
        for key, value in BUSY.items():
            fake.fake_nvml_set(f"gpu*.{key}={value}".encode())
        fake.fake_nvml_set(b"gpm_min_ms=0")
        return "a fake driver"
    return "this machine's driver"


def by_hand() -> Callable[[], object]:
    """A loop of plain pynvml over the eleven values that everyone shows."""
    import pynvml as nvml

    nvml.nvmlInit()
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]

    def read() -> None:
        for handle in handles:
            nvml.nvmlDeviceGetUtilizationRates(handle)
            nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
            nvml.nvmlDeviceGetPowerUsage(handle)
            nvml.nvmlDeviceGetEnforcedPowerLimit(handle)
            nvml.nvmlDeviceGetTotalEnergyConsumption(handle)
            nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
            nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)
            nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)
            nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
            nvml.nvmlDeviceGetTotalEccErrors(handle, 0, 0)
            nvml.nvmlDeviceGetTotalEccErrors(handle, 1, 0)

    return read


def by_nvitop() -> Callable[[], object] | None:
    """What nvitop takes a snapshot of, of every GPU; None where it is not installed."""
    if importlib.util.find_spec("nvitop") is None:
        return None
    device = importlib.import_module("nvitop").Device
    devices = device.all()
    return lambda: [one.as_snapshot() for one in devices]


def rows() -> list[Row]:
    """One reading of all GPUs; nothing where there is neither a driver nor a compiler for the fake one."""
    try:
        where = driver()
    except OSError:
        return []
    sampler = Sampler(Nvml(), time.monotonic, lambda _: None)
    sampler.open()
    works: dict[str, Work] = {"rlotel": sampler.read, "pynvml": by_hand()}
    if (nvitop := by_nvitop()) is not None:
        works["nvitop"] = nvitop
    for work in works.values():
        work()
    values = sum(map(len, sampler.read().points.values()))
    taken = calls(works, TIMES)
    gpus = len(sampler.gpus)
    sampler.close()
    what = f"a reading of {gpus} GPUs on {where}, {values} values, every {PERIOD:.0f} s"
    table = [Row(what, taken["rlotel"], "11 values a GPU by pynvml", taken["pynvml"])]
    if "nvitop" in taken:
        table.append(Row(what, taken["rlotel"], "nvitop's snapshots", taken["nvitop"]))
    return table


def main() -> None:
    """Measure, and print a table."""
    from benchmarks.__main__ import markdown

    logging.disable(logging.WARNING)
    print(markdown(rows()))


if __name__ == "__main__":
    main()
