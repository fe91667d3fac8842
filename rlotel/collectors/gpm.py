"""GPU performance monitoring (GPM), on Hopper and later: what the compute units did between two readings."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rlotel.collectors.devices import Device
from rlotel.collectors.nvml import NOT_SUPPORTED, CallFailed

# Numbers of NVML's interface (nvml.h: NVML_GPM_METRIC_…).
SM_UTILIZATION = 2
SM_OCCUPANCY = 3
TENSOR_UTILIZATION = 5
DRAM_UTILIZATION = 10
PCIE_TRANSMIT = 20
PCIE_RECEIVE = 21
NVLINK_RECEIVE = 60
NVLINK_TRANSMIT = 61
PERCENTAGES = (SM_UTILIZATION, SM_OCCUPANCY, TENSOR_UTILIZATION, DRAM_UTILIZATION)
RATES = (PCIE_TRANSMIT, PCIE_RECEIVE, NVLINK_RECEIVE, NVLINK_TRANSMIT)
"""In MiB/s."""

LEAST_SECONDS = 0.1
"""Between two readings, by NVML's documentation."""
_WANTED = (*PERCENTAGES, *RATES)
_VERSION = 1


class Activity(NamedTuple):
    """What a device did in some seconds: shares from 0 to 1, and rates in bytes/s."""

    seconds: float
    values: dict[int, float]


class Gpm:
    """The performance monitor of one device.

    A reading costs two calls, since each ends one interval and begins the next.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._request: Any = None
        self._latest: Any = None
        self._older: Any = None
        self._when: float | None = None

    def read(self, now: float) -> Activity | None:
        """What happened since the last reading; None at the first, and where it cannot be known.

        Raises:
            Lost: the device is gone.
            CallFailed: the driver is gone.
        """
        if not self._device.can("gpm"):
            return None
        try:
            return self._read(now)
        except CallFailed as failure:
            self._when = None  # an interval that begins here would not begin where the last one ended
            self._device.note("gpm", failure)
            return None

    def _read(self, now: float) -> Activity | None:
        if self._request is None:
            self._prepare()
        if self._when is not None and now - self._when < LEAST_SECONDS:
            return None
        self._sample(self._older)
        self._older, self._latest = self._latest, self._older
        since, self._when = self._when, now
        return None if since is None else Activity(now - since, self._compare())

    def _prepare(self) -> None:
        nvml, owner = self._device.nvml, self._device.parent or self._device
        if not nvml.call("nvmlGpmQueryDeviceSupport", owner.handle).isSupportedDevice:
            raise CallFailed.answered("nvmlGpmQueryDeviceSupport", NOT_SUPPORTED)
        self._latest, self._older = nvml.call("nvmlGpmSampleAlloc"), nvml.call("nvmlGpmSampleAlloc")
        self._request = nvml.call("c_nvmlGpmMetricsGet_t")

    def _sample(self, sample: object) -> None:
        device = self._device
        if device.parent is None:
            device.nvml.call("nvmlGpmSampleGet", device.handle, sample)
        elif device.id.instances is not None:
            device.nvml.call("nvmlGpmMigSampleGet", device.parent.handle, device.id.instances[0], sample)
        else:
            raise CallFailed.answered("nvmlGpmMigSampleGet", NOT_SUPPORTED)

    def _compare(self) -> dict[int, float]:
        request = self._request
        request.version, request.numMetrics = _VERSION, len(_WANTED)
        request.sample1, request.sample2 = self._older, self._latest
        for place, number in enumerate(_WANTED):
            request.metrics[place].metricId = number
        self._device.nvml.call("nvmlGpmMetricsGet", request)
        found: dict[int, float] = {}
        for place, number in enumerate(_WANTED):
            answer = request.metrics[place]
            most, scale = (100.0, 0.01) if number in PERCENTAGES else (math.inf, 2.0**20)
            if answer.nvmlReturn:
                self._device.note(("gpm", number), CallFailed.answered(f"GPM {number}", answer.nvmlReturn))
            elif math.isfinite(answer.value) and 0 <= answer.value <= most:
                found[number] = answer.value * scale
        return found
