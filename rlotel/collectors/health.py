"""What is read of a GPU's health: error counters, remapped rows, limits, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from rlotel.collectors import fields
from rlotel.collectors.reader import Reader
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m

UNHEALTHY_REASONS = 0x8 | 0x20 | 0x40 | 0x80
"""The throttle reasons that are not normal at full load: slowed down by the hardware, or too hot."""

STATES = (attr.HwState.OK, attr.HwState.DEGRADED, attr.HwState.PREDICTED_FAILURE, attr.HwState.FAILED)
"""The states of a GPU in OpenTelemetry's conventions."""

_CORRECTED, _UNCORRECTED = 0, 1
_VOLATILE = 0
"""ECC errors since the driver was loaded."""
_SHUTDOWN, _SLOWDOWN = 0, 1
_HOPPER = (9, 0)


@dataclass
class Health:
    """What the seldom read values say of a GPU; nothing, as long as they say nothing."""

    will_fail: bool = False
    """Memory rows could not be replaced."""
    needs_care: bool = False
    """Rows wait to be replaced, or the driver asks for a reset."""


def read(reader: Reader) -> Health:
    """Read what changes by the hour if at all.

    Raises:
        Lost: the device is gone.
        CallFailed: the driver is gone.
    """
    device = reader.device
    reader.put(m.GPU_POWER_LIMIT, device.read("nvmlDeviceGetEnforcedPowerLimit"), by=1e-3)
    for threshold, kind in ((_SLOWDOWN, attr.HwLimitType.THROTTLED), (_SHUTDOWN, attr.HwLimitType.HIGH_CRITICAL)):
        reader.temperature("gpu", device.read("nvmlDeviceGetTemperatureThreshold", threshold) or None, kind)
    for kind_of_error, error_type in ((_CORRECTED, "corrected"), (_UNCORRECTED, "uncorrected")):
        errors = device.read("nvmlDeviceGetTotalEccErrors", kind_of_error, _VOLATILE)
        reader.count(m.HW_ERRORS, error_type, errors, {attr.ERROR_TYPE.name: error_type})
    replays = device.read("nvmlDeviceGetPcieReplayCounter")
    reader.count(m.HW_ERRORS, "pcie_replay", replays, {attr.ERROR_TYPE.name: "pcie_replay"})
    _nvlink_errors(reader)
    return _rows(reader)


def _rows(reader: Reader) -> Health:
    health = Health()
    rows = reader.device.read("nvmlDeviceGetRemappedRows")
    if rows is not None:
        correctable, uncorrectable, pending, failed = rows
        for cause, count in (
            (attr.GpuRemapCause.CORRECTABLE, correctable),
            (attr.GpuRemapCause.UNCORRECTABLE, uncorrectable),
        ):
            reader.count(m.GPU_ROWS_REMAPPED, cause, count, {attr.GPU_REMAP_CAUSE.name: cause.value})
        health = Health(will_fail=bool(failed), needs_care=bool(pending))
    action = fields.read(reader.device, [fields.RECOVERY_ACTION]).get(fields.RECOVERY_ACTION)
    if action is not None and action.value:
        health.needs_care = True
    return health


def _nvlink_errors(reader: Reader) -> None:
    """Errors of the links. From Hopper on each link's own: the old counters succeed there, and are always 0."""
    device = reader.device
    old = device.architecture is not None and device.architecture < _HOPPER
    if old:
        kinds: dict[str, list[fields.Field]] = {
            "nvlink_replay": [fields.NVLINK_REPLAYS_BEFORE_HOPPER],
            "nvlink_recovery": [fields.NVLINK_RECOVERIES_BEFORE_HOPPER],
        }
    else:
        count = fields.read(device, [fields.NVLINK_COUNT]).get(fields.NVLINK_COUNT)
        links = range(int(count.value) if count else 0)
        kinds = {
            "nvlink_replay": [(fields.NVLINK_REPLAYS, link) for link in links],
            "nvlink_recovery": [(fields.NVLINK_RECOVERIES, link) for link in links],
        }
    found = fields.read(device, [field for listed in kinds.values() for field in listed])
    for error_type, listed in kinds.items():
        counters: dict[Hashable, fields.Value | float] = {
            field: found[field] for field in listed if field in found
        }
        reader.count_all(m.HW_ERRORS, counters, {attr.ERROR_TYPE.name: error_type})


def judge(reader: Reader, health: Health | None, reasons: int | None) -> attr.HwState | None:
    """The state of a GPU that answers; None if it said nothing to judge by."""
    if health is not None and health.will_fail:
        return attr.HwState.PREDICTED_FAILURE
    if (health is not None and health.needs_care) or (reasons or 0) & UNHEALTHY_REASONS:
        return attr.HwState.DEGRADED
    return attr.HwState.OK if reader.points else None
