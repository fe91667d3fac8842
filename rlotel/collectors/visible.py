"""Which GPUs a process uses: from `CUDA_VISIBLE_DEVICES` and from Ray's assignment to UUIDs.

NVML knows nothing of that variable: GPU 0 of a process is seldom GPU 0 of the node. The rules are those of the
CUDA runtime; no CUDA context is made to ask it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
NOT_SET_BY_RAY = "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class GpuId:
    """A GPU of the node, or a slice of one (MIG)."""

    uuid: str
    index: int
    """NVML's, in this container; of a slice its GPU's."""
    model: str
    slices: tuple[GpuId, ...] = ()
    parent: str | None = None
    """Of a slice: its GPU's UUID."""
    instances: tuple[int, int] | None = None
    """Of a slice: the numbers of its GPU instance and compute instance."""
    sm_share: float | None = None
    """Of a slice: the share of its GPU's multiprocessors that it has, None where unknown."""

    @property
    def name(self) -> str:
        """A name to recognise it by on its node."""
        of_gpu = f"GPU {self.index}"
        return of_gpu if self.instances is None else "{} MIG {}/{}".format(of_gpu, *self.instances)


def visible(gpus: Sequence[GpuId], environ: Mapping[str, str]) -> tuple[GpuId, ...] | None:
    """The devices that CUDA shows to a process, in its order.

    As CUDA does it: a list of ordinals, or of UUIDs or beginnings of them, is followed up to the first entry that
    is none; a device that is listed twice makes the whole list void; a process sees at most one MIG slice.

    Args:
        gpus: all of the node, as NVML orders them.
        environ: the process's environment.

    Returns:
        None if it cannot be known: ordinals count the fastest first, and the GPUs are not all alike.
    """
    value = environ.get(VISIBLE)
    if value is None:
        whole = tuple(gpu for gpu in gpus if not gpu.slices)
        return whole or tuple(one for gpu in gpus for one in gpu.slices)[:1]
    entries = [entry.strip() for entry in value.split(",")]
    if entries[0].isdecimal():
        if environ.get(ORDER) != "PCI_BUS_ID" and len({gpu.model for gpu in gpus}) > 1:
            return None
        return _single_slice(_by_ordinal(entries, gpus))
    return _single_slice(_by_uuid(entries, gpus))


def _by_ordinal(entries: Sequence[str], gpus: Sequence[GpuId]) -> list[GpuId]:
    numbered = {gpu.index: gpu for gpu in gpus}  # one that cannot be read leaves a gap
    chosen: list[GpuId] = []
    for entry in entries:
        gpu = numbered.get(int(entry)) if entry.isdecimal() else None
        if gpu is None:
            break
        if gpu in chosen:
            return []
        chosen.append(gpu)
    return [gpu.slices[0] if gpu.slices else gpu for gpu in chosen]


def _by_uuid(entries: Sequence[str], gpus: Sequence[GpuId]) -> list[GpuId]:
    chosen: list[GpuId] = []
    for entry in entries:
        device = _named(entry, gpus)
        if device is None:
            break
        if device in chosen:
            return []
        chosen.append(device)
    return chosen


def _named(entry: str, gpus: Sequence[GpuId]) -> GpuId | None:
    if not entry.startswith(("GPU-", "MIG-")):
        return None
    if entry.startswith(
        "MIG-GPU-"
    ):  # as drivers before R470 name a slice: MIG-<UUID of the GPU>/<instance>/<instance>
        return next((one for gpu in gpus for one in gpu.slices if entry == _old_name(one)), None)
    # A GPU in MIG mode is no device of its own.
    devices = [device for gpu in gpus for device in (gpu.slices or (gpu,))]
    matching = [device for device in devices if device.uuid.startswith(entry)]
    return matching[0] if len(matching) == 1 else None


def _old_name(one: GpuId) -> str | None:
    return None if one.instances is None else "MIG-{}/{}/{}".format(one.parent, *one.instances)


def _single_slice(devices: Sequence[GpuId]) -> tuple[GpuId, ...]:
    sliced = [device for device in devices if device.parent is not None]
    return tuple(sliced[:1] or devices)


def assigned(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment as far as it says which GPUs this process uses, with Ray's word where the variable lacks it.

    Ray sets the variable in its workers unless it is told not to; then only Ray itself knows. To be called in the
    process it is about. Without the variable and without Ray's word the process may use all.
    """
    told = {name: environ[name] for name in (VISIBLE, ORDER) if name in environ}
    ids = _from_ray() if environ.get(NOT_SET_BY_RAY) else None
    if ids or (ids is not None and VISIBLE not in told):
        told[VISIBLE] = ",".join(ids)
    return told


def _from_ray() -> list[str] | None:
    ray = sys.modules.get("ray")
    try:
        if ray is None or not ray.is_initialized():
            return None
        return [str(one) for one in ray.get_runtime_context().get_accelerator_ids()["GPU"]]
    except Exception:  # noqa: BLE001 - a driver has no assignment, and an old Ray no such call
        return None
