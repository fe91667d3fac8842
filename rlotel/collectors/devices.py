"""The node's GPUs and their MIG slices, found once; each remembers what it cannot say and whether it is lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from rlotel.collectors.nvml import FUNCTION_NOT_FOUND, CallFailed, Meaning, Nvml, text
from rlotel.collectors.visible import GpuId

Failure = Callable[[str], None]
"""Told the `error.type` of a value that could not be read."""

_SM_CLOCK = 1

# CUDA cores of a multiprocessor, for the architectures that can be sliced: all others have 128.
_CORES: dict[tuple[int, int], int] = {(8, 0): 64}


class Lost(Exception):
    """The device is gone until it is reset."""


class Device:
    """A GPU, or a slice of one, that values are read from.

    Args:
        nvml: the open library.
        handle: NVML's.
        identity: what it is.
        failed: told of every value that could not be read.
        parent: of a slice, its GPU.
    """

    def __init__(
        self, nvml: Nvml, handle: object, identity: GpuId, failed: Failure, parent: Device | None = None
    ) -> None:
        self.nvml = nvml
        self.handle = handle
        self.id = identity
        self.parent = parent
        self.slices: list[Device] = []
        self._failed = failed
        self._cannot: dict[object, CallFailed] = {}
        version = self.read("nvmlDeviceGetCudaComputeCapability")
        self.architecture: tuple[int, int] | None = None if version is None else (version[0], version[1])
        self.top_clock: int | None = None
        """MHz, of a GPU."""
        self.bus: str | None = None
        """Where on the PCI bus a GPU is, as `b4:00`."""

    def read(self, call: str, *args: object, **kwargs: object) -> Any:
        """A value of this device, or None: what it does not support is asked once.

        Raises:
            Lost: the device is gone.
            CallFailed: the driver is gone.
        """
        question = (call, *args, *kwargs.items())
        if question in self._cannot:
            return None
        try:
            return self.nvml.call(call, self.handle, *args, **kwargs)
        except CallFailed as failure:
            self.note(question, failure)
            return None

    def can(self, question: object) -> bool:
        """Whether it is worth asking."""
        return question not in self._cannot

    def driver_lacks(self, question: object) -> bool:
        """Whether the driver is too old to be asked."""
        failure = self._cannot.get(question)
        return failure is not None and failure.code == FUNCTION_NOT_FOUND

    def note(self, question: object, failure: CallFailed) -> None:
        """Draw the consequence of a failure.

        Raises:
            Lost: the device is gone.
            CallFailed: the driver is gone.
        """
        if failure.meaning is Meaning.DOWN:
            raise failure
        if failure.meaning is Meaning.LOST:
            self._failed(failure.error_type)
            raise Lost(str(failure))
        if failure.meaning is Meaning.UNSUPPORTED:
            self._cannot[question] = failure
        else:
            self._failed(failure.error_type)


def short_bus(address: str) -> str:
    """Bus and device of a PCI address: what its spellings, with or without domain and function, share."""
    return ":".join(address.partition(".")[0].lower().split(":")[-2:])


def find(nvml: Nvml, failed: Failure, known: Collection[str] = ()) -> Iterator[Device]:
    """All GPUs of the node that can be opened, in NVML's order; one that cannot does not keep the others from it.

    Args:
        nvml: the open library.
        failed: told of every value that could not be read.
        known: UUIDs of those that are open already, which are passed over.

    Raises:
        CallFailed: the driver is gone.
    """
    for index in range(nvml.call("nvmlDeviceGetCount")):
        device = _try_to_open(nvml, index, failed, known)
        if device is not None:
            yield device


def _try_to_open(nvml: Nvml, index: int, failed: Failure, known: Collection[str]) -> Device | None:
    try:
        handle = nvml.call("nvmlDeviceGetHandleByIndex", index)
        uuid = text(nvml.call("nvmlDeviceGetUUID", handle))
        return None if uuid in known else _open(nvml, handle, uuid, index, failed)
    except Lost:
        return None  # it has told so
    except CallFailed as failure:
        if failure.meaning is Meaning.DOWN:
            raise
        failed(failure.error_type)
        return None


def _open(nvml: Nvml, handle: object, uuid: str, index: int, failed: Failure) -> Device:
    gpu = Device(nvml, handle, GpuId(uuid, index, ""), failed)
    model = text(gpu.read("nvmlDeviceGetName") or "")
    gpu.id = GpuId(uuid, index, model)
    gpu.top_clock = gpu.read("nvmlDeviceGetMaxClockInfo", _SM_CLOCK)
    if (pci := gpu.read("nvmlDeviceGetPciInfo")) is not None:
        gpu.bus = short_bus(text(pci.busId))
    mode = gpu.read("nvmlDeviceGetMigMode")
    if mode and mode[0]:
        gpu.slices = list(_slices(gpu, failed))
        gpu.id = GpuId(uuid, index, model, tuple(one.id for one in gpu.slices))
    return gpu


def _slices(gpu: Device, failed: Failure) -> Iterator[Device]:
    for place in range(gpu.read("nvmlDeviceGetMaxMigDeviceCount") or 0):
        try:
            handle = gpu.nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", gpu.handle, place)
            uuid = text(gpu.nvml.call("nvmlDeviceGetUUID", handle))
        except CallFailed as failure:
            if failure.meaning is Meaning.DOWN:
                raise
            continue  # a place without a slice: others may follow
        one = Device(gpu.nvml, handle, GpuId(uuid, gpu.id.index, "", parent=gpu.id.uuid), failed, gpu)
        numbers = one.read("nvmlDeviceGetGpuInstanceId"), one.read("nvmlDeviceGetComputeInstanceId")
        one.id = GpuId(
            uuid,
            gpu.id.index,
            text(one.read("nvmlDeviceGetName") or ""),
            parent=gpu.id.uuid,
            instances=None if None in numbers else numbers,
            sm_share=_sm_share(one, gpu),
        )
        yield one


def _sm_share(one: Device, gpu: Device) -> float | None:
    attributes = one.read("nvmlDeviceGetAttributes")
    cores = gpu.read("nvmlDeviceGetNumGpuCores")
    if attributes is None or not cores or gpu.architecture is None:
        return None
    share: float = attributes.multiprocessorCount * _CORES.get(gpu.architecture, 128) / cores
    return share if 0 < share <= 1 else None
