"""Values that NVML gives by number: many in one call, each with a result of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rlotel.collectors.devices import Device
from rlotel.collectors.nvml import NOT_SUPPORTED, CallFailed

ALL_LINKS = 0xFFFFFFFF

# Numbers of NVML's interface, which never change (nvml.h: NVML_FI_DEV_…).
MEMORY_TEMPERATURE = (82, 0)
NVLINK_TRANSMIT = (138, ALL_LINKS)
NVLINK_RECEIVE = (139, ALL_LINKS)
PCIE_TRANSMIT = (197, 0)
PCIE_RECEIVE = (198, 0)
RECOVERY_ACTION = (230, 0)
SW_POWER_CAP = (74, 0)
SYNC_BOOST = (76, 0)
SW_THERMAL = (269, 0)
HW_THERMAL = (270, 0)
HW_POWER_BRAKE = (271, 0)
NVLINK_COUNT = (91, 0)
NVLINK_REPLAYS_BEFORE_HOPPER = (52, 0)
NVLINK_RECOVERIES_BEFORE_HOPPER = (59, 0)
NVLINK_REPLAYS = 161
"""With the number of a link behind it."""
NVLINK_RECOVERIES = 162

Field = tuple[int, int]
"""A field's number, and the part of the device that is asked."""

_KINDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
_BITS: Mapping[str, int] = {"uiVal": 32, "ulVal": 64, "ullVal": 64, "usVal": 16}


class Value(NamedTuple):
    """A value, and its width if it is a counter that wraps."""

    value: float
    bits: int | None


def read(device: Device, fields: Iterable[Field]) -> dict[Field, Value]:
    """Read what the device has of these fields, in one call; what it has not is absent, and asked once.

    Raises:
        Lost: the device is gone.
        CallFailed: the driver is gone.
    """
    wanted = tuple(field for field in fields if device.can(field))
    answers = device.read("nvmlDeviceGetFieldValues", wanted) if wanted else None
    if wanted and not device.can(("nvmlDeviceGetFieldValues", wanted)):
        for field in wanted:
            device.note(field, CallFailed.answered(f"field {field[0]}", NOT_SUPPORTED))
    found: dict[Field, Value] = {}
    for field, answer in zip(wanted, answers or (), strict=False):
        if answer.nvmlReturn:
            device.note(field, CallFailed.answered(f"field {field[0]}", answer.nvmlReturn))
        elif 0 <= answer.valueType < len(_KINDS):
            kind = _KINDS[answer.valueType]
            value = getattr(answer.value, kind, None)
            if value is not None:
                found[field] = Value(float(value), _BITS.get(kind))
    return found
