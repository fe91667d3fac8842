"""What is read of a GPU, call by call, and what it means in the words of the semantic model."""

from __future__ import annotations

from collections.abc import Mapping

from rlotel.collectors import fields, gpm
from rlotel.collectors.reader import Reader
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m

_SM_CLOCK, _MEMORY_CLOCK = 1, 2
_V2 = {"version": 0x02000028}
"""The memory information that tells apart what the driver reserves."""

_TRANSMIT = {attr.NETWORK_IO_DIRECTION.name: attr.NetworkIoDirection.TRANSMIT.value}
_RECEIVE = {attr.NETWORK_IO_DIRECTION.name: attr.NetworkIoDirection.RECEIVE.value}

_Reason = attr.GpuThrottleReason
REASONS: Mapping[_Reason, int] = {
    _Reason.SW_POWER_CAP: 0x4,
    _Reason.HW_SLOWDOWN: 0x8,
    _Reason.SYNC_BOOST: 0x10,
    _Reason.SW_THERMAL: 0x20,
    _Reason.HW_THERMAL: 0x40,
    _Reason.HW_POWER_BRAKE: 0x80,
}
"""The bit of each reason that the driver gives for a clock below the wanted one."""
_REASON_TIMES: Mapping[_Reason, fields.Field] = {
    _Reason.SW_POWER_CAP: fields.SW_POWER_CAP,
    _Reason.SYNC_BOOST: fields.SYNC_BOOST,
    _Reason.SW_THERMAL: fields.SW_THERMAL,
    _Reason.HW_THERMAL: fields.HW_THERMAL,
    _Reason.HW_POWER_BRAKE: fields.HW_POWER_BRAKE,
}
"""The time that the driver counts for each, in ns."""

_FAST = (
    fields.MEMORY_TEMPERATURE,
    fields.NVLINK_TRANSMIT,
    fields.NVLINK_RECEIVE,
    fields.PCIE_TRANSMIT,
    fields.PCIE_RECEIVE,
    *_REASON_TIMES.values(),
)


def read_often(reader: Reader, now: float, elapsed: float | None) -> tuple[int | None, int | None]:
    """Read what changes by the second of a GPU that is not sliced, or of what is its whole of one that is.

    Args:
        reader: of the GPU.
        now: the moment, in seconds.
        elapsed: seconds since the last reading, None at the first.

    Returns:
        Its clock in MHz and the bits of its present throttle reasons, None where unknown.

    Raises:
        Lost: the device is gone.
        CallFailed: the driver is gone.
    """
    device = reader.device
    if not device.slices:
        if (rates := device.read("nvmlDeviceGetUtilizationRates")) and rates.gpu <= 100:
            general = {attr.HW_GPU_TASK.name: attr.HwGpuTask.GENERAL.value}
            reader.put(m.HW_GPU_UTILIZATION, rates.gpu, general, by=0.01)
        read_memory(reader)
    reader.put(m.HW_POWER, device.read("nvmlDeviceGetPowerUsage"), by=1e-3)
    reader.count(m.HW_ENERGY, "energy", device.read("nvmlDeviceGetTotalEnergyConsumption"), by=1e-3)
    reader.temperature("gpu", _temperature(reader))
    clock = device.read("nvmlDeviceGetClockInfo", _SM_CLOCK)
    _clock(reader, attr.GpuClock.SM, clock)
    _clock(reader, attr.GpuClock.MEMORY, device.read("nvmlDeviceGetClockInfo", _MEMORY_CLOCK))
    found = fields.read(device, _FAST)
    if temperature := found.get(fields.MEMORY_TEMPERATURE):
        reader.temperature("memory", temperature.value or None)  # memory at 0 °C is memory without a sensor
    reasons = _reasons(reader)
    _throttling(reader, reasons, found, elapsed)
    activity = None if device.slices else read_activity(reader, now, clock)
    _links(reader, found, activity)
    return clock, reasons


def read_slice(reader: Reader, now: float, clock: int | None) -> None:
    """Read what a MIG slice has of its own; power, clocks and errors are its GPU's. Raises as `read_often`."""
    read_memory(reader)
    read_activity(reader, now, clock)
    if reader.points:
        reader.tell_peak()


def read_memory(reader: Reader) -> None:
    """Memory in use, in all, and kept by the driver."""
    device = reader.device
    info = device.read("nvmlDeviceGetMemoryInfo", **_V2)
    if info is None and device.driver_lacks(("nvmlDeviceGetMemoryInfo", *_V2.items())):
        # Before R510, where `used` did not have the reserved part in it yet.
        info = device.read("nvmlDeviceGetMemoryInfo")
    if info is None or not info.total:
        return
    reader.put(m.HW_GPU_MEMORY_USAGE, info.used)
    reader.put(m.HW_GPU_MEMORY_LIMIT, info.total)
    reader.put(m.HW_GPU_MEMORY_UTILIZATION, info.used / info.total)
    reader.put(m.GPU_MEMORY_RESERVED, getattr(info, "reserved", None))


def read_activity(reader: Reader, now: float, clock: int | None) -> gpm.Activity | None:
    """What the compute units did since the last reading, and the hardware's own word on MFU."""
    activity = reader.gpm.read(now)
    if activity is None:
        return None
    tensor = activity.values.get(gpm.TENSOR_UTILIZATION)
    reader.put(m.GPU_SM_UTILIZATION, activity.values.get(gpm.SM_UTILIZATION))
    reader.put(m.GPU_SM_OCCUPANCY, activity.values.get(gpm.SM_OCCUPANCY))
    reader.put(m.GPU_TENSOR_UTILIZATION, tensor)
    reader.put(m.GPU_MEMORY_BANDWIDTH_UTILIZATION, activity.values.get(gpm.DRAM_UTILIZATION))
    top = (reader.device.parent or reader.device).top_clock
    if tensor is not None and clock and top and clock <= top:
        reader.put(m.GPU_OFU, tensor * clock / top)
    return activity


def _clock(reader: Reader, which: attr.GpuClock, megahertz: int | None) -> None:
    reader.put(m.GPU_CLOCK_FREQUENCY, megahertz, {attr.GPU_CLOCK.name: which.value}, by=1e6)


def _temperature(reader: Reader) -> int | None:
    device = reader.device
    degrees: int | None = device.read("nvmlDeviceGetTemperature", 0)
    if degrees is None and not device.can(("nvmlDeviceGetTemperature", 0)):
        degrees = device.read("nvmlDeviceGetTemperatureV", 0)  # all that is left of it from CUDA 14 on
    return degrees


def _reasons(reader: Reader) -> int | None:
    device = reader.device
    call = "nvmlDeviceGetCurrentClocksEventReasons"
    reasons: int | None = device.read(call)
    if reasons is None and not device.can((call,)):
        reasons = device.read("nvmlDeviceGetCurrentClocksThrottleReasons")  # its name until CUDA 12.2
    return reasons


def _throttling(
    reader: Reader, reasons: int | None, found: Mapping[fields.Field, fields.Value], elapsed: float | None
) -> None:
    """Time by reason: the driver's own count, else the time before each reading that has the bit."""
    for reason, bit in REASONS.items():
        labels = {attr.GPU_THROTTLE_REASON.name: reason.value}
        field = _REASON_TIMES.get(reason)
        if field is not None and reader.device.can(field):
            reader.count(m.GPU_THROTTLE_TIME, field, found.get(field), labels, by=1e-9)
        elif reasons is not None:
            reader.increase(m.GPU_THROTTLE_TIME, (elapsed or 0.0) if reasons & bit else 0.0, labels)


def _links(reader: Reader, found: Mapping[fields.Field, fields.Value], activity: gpm.Activity | None) -> None:
    """Bytes over PCIe and NVLink: the driver's counters, else the monitor's rates times the time they hold for.

    Never `nvmlDeviceGetPcieThroughput`, which waits 20 ms at each call. A counter of bytes over PCIe that is only
    32 bits wide wraps several times a second: it says nothing.
    """
    links = (
        (m.HW_GPU_IO, _TRANSMIT, fields.PCIE_TRANSMIT, gpm.PCIE_TRANSMIT, 1, 64),
        (m.HW_GPU_IO, _RECEIVE, fields.PCIE_RECEIVE, gpm.PCIE_RECEIVE, 1, 64),
        (m.GPU_NVLINK_IO, _TRANSMIT, fields.NVLINK_TRANSMIT, gpm.NVLINK_TRANSMIT, 1024, 32),
        (m.GPU_NVLINK_IO, _RECEIVE, fields.NVLINK_RECEIVE, gpm.NVLINK_RECEIVE, 1024, 32),
    )
    for metric, direction, field, number, unit, least_bits in links:
        value = found.get(field)
        if value is not None and (value.bits or 64) >= least_bits:
            reader.count(metric, field, value, direction, by=unit)
        elif activity and number in activity.values and (value is not None or not reader.device.can(field)):
            reader.increase(metric, activity.values[number] * activity.seconds, direction)
