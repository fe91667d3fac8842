"""NVIDIA's library, faked in C and loaded through the real nvidia-ml-py, and a clock that stands still."""

import ctypes
import os
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pynvml
import pytest

from rlotel.collectors.nvml import Nvml
from rlotel.collectors.sampling import Sample, Sampler
from rlotel.instruments import Value
from rlotel.semconv.types import Metric
from rlotel.testing import StillClock

HERE = Path(__file__).parent

BUSY = {
    "util": 97,
    "mem_used": 60_000_000_000,
    "power_mw": 650_000,
    "energy_mj": 5_000_000,
    "temp": 61,
    "clock_sm": 1755,
    "clock_reasons": 0x4,
    "ecc_cor_vol": 7,
    "ecc_unc_vol": 2,
    "remap_cor": 3,
    "remap_unc": 1,
    "pcie_replay": 4,
    "field82": 70,  # memory temperature
    "field138": 1000,  # NVLink, KiB
    "field139": 2000,
    "field197": 3_000_000,  # PCIe, bytes
    "field198": 4_000_000,
    "field74": 1_000_000_000,  # throttled, ns
    "field76": 2_000_000_000,
    "field269": 3_000_000_000,
    "field270": 4_000_000_000,
    "field271": 5_000_000_000,
    "field91": 2,  # links
    "field161": 5,
    "field162": 6,
    "field230": 0,  # recovery action
    "gpm2_milli": 88_000,
    "gpm3_milli": 45_000,
    "gpm5_milli": 50_000,
    "gpm10_milli": 70_000,
    "gpm20_milli": 1_000,
    "gpm21_milli": 2_000,
    "gpm60_milli": 3_000,
    "gpm61_milli": 4_000,
}
"""A Hopper GPU that trains: every value that can be read, none of them 0."""


class Builds(NamedTuple):
    """Folders with a `libnvidia-ml.so.1`."""

    new: Path
    old: Path
    """Of a driver that exports only what the first ones had."""


FOREIGN = ("CUDA_", "RAY_", "SLURM_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "OMPI_", "PMI_", "JOB_COMPLETION_INDEX")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that nobody launched or gave GPUs to."""
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """The fake library, built with this machine's C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        assert not os.environ.get("CI"), "there is no C compiler (cc) to build the fake NVML with"
        pytest.skip("there is no C compiler (cc) to build the fake NVML with")
    folders = Builds(tmp_path_factory.mktemp("nvml"), tmp_path_factory.mktemp("nvml-old"))
    for folder, more in ((folders.new, []), (folders.old, [f"-Wl,--version-script={HERE / 'old_driver.map'}"])):
        options = ["-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden"]
        target = ["-Wl,-soname,libnvidia-ml.so.1", "-o", str(folder / "libnvidia-ml.so.1")]
        subprocess.run([compiler, *options, *target, *more, str(HERE / "fake_nvml.c"), "-lpthread"], check=True)
    return folders


class Driver:
    """The fake, as the tests change it."""

    def __init__(self, folder: Path) -> None:
        self._library = ctypes.CDLL(str(folder / "libnvidia-ml.so.1"))
        self._library.fake_nvml_called.restype = ctypes.c_ulonglong
        self._library.fake_nvml_clear()

    def set(self, **keys: int | str) -> None:
        """Change keys of the node: `set(count=2)`."""
        for key, value in keys.items():
            self._library.fake_nvml_set(f"{key}={value}".encode())

    def gpu(self, which: int | str = "*", **keys: int | str) -> None:
        """Change keys of one GPU, or of all."""
        for key, value in keys.items():
            self._library.fake_nvml_set(f"gpu{which}.{key}={value}".encode())

    def returns(self, function: str, code: int, gpu: int | None = None) -> None:
        """Let a function of the library return an error, of one GPU or always; 0 lets it be well again."""
        where = "" if gpu is None else f"gpu{gpu}."
        self._library.fake_nvml_set(f"{where}fn.{function}={code}".encode())

    def xid(self, gpu: int, code: int) -> None:
        """Let a GPU report an error."""
        self._library.fake_nvml_push_xid(gpu, ctypes.c_ulonglong(code))

    def event(self, gpu: int, kind: int, data: int) -> None:
        """Let an event of any kind come."""
        self._library.fake_nvml_push_event(gpu, ctypes.c_ulonglong(kind), ctypes.c_ulonglong(data))

    def called(self, function: str, gpu: int = -1) -> int:
        """How often a function was called."""
        return int(self._library.fake_nvml_called(function.encode(), gpu))

    def sizeof(self, structure: str) -> int:
        """The size of a structure, as NVIDIA's header has it."""
        return int(self._library.fake_nvml_sizeof(structure.encode()))

    def clear(self) -> None:
        """Forget everything, as a driver that is loaded anew."""
        self._library.fake_nvml_clear()


def _bind(library: object) -> None:
    pynvml.nvmlLib = library
    pynvml._nvmlLib_refcount = 0
    pynvml._nvmlGetFunctionPointer_cache.clear()


@pytest.fixture
def driver(builds: Builds) -> Iterator[Driver]:
    """A driver with 8 GPUs of which everything can be read."""
    fake = Driver(builds.new)
    fake.gpu(**BUSY)
    fake.set(gpm_min_ms=0)
    _bind(fake._library)
    yield fake
    until(lambda: "rlotel-gpu" not in [thread.name for thread in threading.enumerate()])
    fake.clear()
    _bind(None)


@pytest.fixture
def old_driver(builds: Builds) -> Iterator[Driver]:
    """A driver that knows only the first calls."""
    fake = Driver(builds.old)
    fake.gpu(**BUSY, mem_v1_reserved=0)
    _bind(fake._library)
    yield fake
    fake.clear()
    _bind(None)


class Readings:
    """A sampler that is read by hand, and what it gave."""

    def __init__(self) -> None:
        self.clock = StillClock()
        self.failures: Counter[str] = Counter()
        self.sampler = Sampler(Nvml(), self.clock.monotonic, lambda error_type: self.failures.update([error_type]))
        self.sample: Sample

    def read(self, times: int = 1, seconds: float = 1.0) -> Sample:
        """Read that often, with so much time before each reading."""
        for _ in range(times):
            self.clock.advance(seconds)
            self.sample = self.sampler.read()
        return self.sample

    def values(self, metric: Metric, **match: Value) -> dict[str, float]:
        """Values of a metric by `hw.name`, or by the attribute in which several points of a GPU differ."""
        wanted = {name.replace("_", "."): value for name, value in match.items()}
        return {
            str(labels.get("hw.name")): value
            for value, labels in self.sample.points.get(metric, [])
            if wanted.items() <= labels.items()
        }

    def value(self, metric: Metric, gpu: int | str = 0, **labels: Value) -> float | None:
        """The one value of a metric of a GPU, None if there is none."""
        name = f"GPU {gpu}" if isinstance(gpu, int) else gpu
        wanted: Mapping[str, Value] = {"hw.name": name, **{k.replace("__", "."): v for k, v in labels.items()}}
        found = [value for value, given in self.sample.points.get(metric, []) if wanted.items() <= given.items()]
        assert len(found) <= 1, f"{metric} has {len(found)} points"
        return found[0] if found else None

    def all(self, gpu: int = 0) -> dict[tuple[str, tuple[tuple[str, Value], ...]], float]:
        """All that was read of a GPU, by metric and attributes."""
        return {
            (metric.name, tuple(sorted(labels.items()))): value
            for metric, points in self.sample.points.items()
            for value, labels in points
            if labels["hw.name"] == f"GPU {gpu}"
        }


@pytest.fixture
def readings(driver: Driver) -> Iterator[Readings]:
    """The sampler over the fake driver, open."""
    reading = Readings()
    reading.sampler.open()
    yield reading
    reading.sampler.close()


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something that another thread or process does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)
