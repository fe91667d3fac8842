"""What is installed here: versions, training frameworks, and what reads GPUs. Imports none of the frameworks."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import platform
import re
import sys
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from rlotel import integrations
from rlotel.doctor.bounded import bounded
from rlotel.version import __version__

PACKAGES = (
    "opentelemetry-api",
    "opentelemetry-sdk",
    "opentelemetry-instrumentation",
    "protobuf",
    "grpcio",
    "requests",
    "wrapt",
)

OTHERS = ("pufferlib", "prime_rl", "rllm", "sample_factory", "slime", "tianshou", "torchrl", "tunix")
"""Import names of training frameworks that are worth a word, though there is no integration."""

DRIVER_VERSION = Path("/proc/driver/nvidia/version")
_GPU_SECONDS = 5.0


@dataclass(frozen=True)
class Framework:
    """A training framework, or another thing that an integration watches."""

    name: str
    version: str | None
    present: bool
    instrumented: bool
    """Whether this session would connect it."""
    known: bool
    """Whether rlotel has an integration for it."""


@dataclass(frozen=True)
class Gpu:
    """What there is to read NVIDIA GPUs with, and what it says."""

    package: str | None
    """Version of nvidia-ml-py."""
    library: bool
    """Whether NVIDIA's own library can be loaded, which comes with the driver."""
    driver: str | None
    devices: tuple[str, ...]
    problem: str = ""
    """Why the devices could not be listed, if they could not."""


def versions() -> dict[str, str]:
    """Versions of rlotel, of Python and of what rlotel stands on; what is not installed is left out."""
    found = {"rlotel": __version__, "python": f"{platform.python_version()} ({sys.executable})"}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def frameworks(chosen: Collection[str]) -> tuple[Framework, ...]:
    """All frameworks that rlotel knows, and others that are here.

    Args:
        chosen: the names of the integrations that a session would connect.
    """
    distributions = metadata.packages_distributions()

    def version(package: str | None) -> str | None:
        names = distributions.get(package or "", [])
        return metadata.version(names[0]) if names else None

    found = [
        Framework(name, version(known.package), known.present, name in chosen, known=True)
        for name, known in integrations.KNOWN.items()
    ]
    found += [
        Framework(name, version(name), present=True, instrumented=False, known=False)
        for name in OTHERS
        if importlib.util.find_spec(name) is not None
    ]
    return tuple(found)


def gpu(driver_version: Path = DRIVER_VERSION) -> Gpu:
    """What reads the GPUs of this machine; waits 5 s at most for a driver that hangs."""
    try:
        package: str | None = metadata.version("nvidia-ml-py")
    except metadata.PackageNotFoundError:
        package = None
    devices: tuple[str, ...] = ()
    problem = ""
    if package is not None:
        try:
            devices = bounded(_devices, _GPU_SECONDS)
        except Exception as error:  # noqa: BLE001 - NVML's errors are many, and each only means: not to be read
            problem = " ".join(str(error).split()) or type(error).__name__
    return Gpu(package, _loads("libnvidia-ml.so.1"), _driver(driver_version), devices, problem)


def _devices() -> tuple[str, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a package `pynvml` of others warns that it is not this one
        nvml = importlib.import_module("pynvml")
    nvml.nvmlInit()
    try:
        names = (
            nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(index))
            for index in range(nvml.nvmlDeviceGetCount())
        )
        return tuple(name.decode() if isinstance(name, bytes) else str(name) for name in names)
    finally:
        nvml.nvmlShutdown()


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _driver(version: Path) -> str | None:
    try:
        match = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)", version.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return match[1] if match else None
