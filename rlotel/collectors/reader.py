"""The values of one device as they will be exported: named, with totals that never fall, and absent if unknown."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from rlotel import flops
from rlotel.collectors.devices import Device
from rlotel.collectors.fields import Value as FieldValue
from rlotel.collectors.gpm import Gpm
from rlotel.collectors.tallies import Tallies
from rlotel.instruments import Attributes, Value
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.types import Metric

DTYPE = "bf16"
"""What the peak of a GPU is given for: what is trained in, unless the peak is set."""


Labels = Mapping[str, Value]
NO_LABELS: Labels = MappingProxyType({})


class Point(NamedTuple):
    """A value as it will be exported."""

    metric: Metric
    value: float
    attributes: Attributes


class Reader:
    """One device that is read again and again.

    Args:
        device: the GPU or slice.
        tallies: the totals of the session's counters.
        peak: what the user says the peak FLOP/s is, if anything.
    """

    def __init__(self, device: Device, tallies: Tallies, peak: float | None) -> None:
        self.device = device
        self._tallies = tallies
        self.gpm = Gpm(device)
        self._name: dict[str, Value] = {
            attr.HW_ID.name: device.id.uuid,
            attr.HW_NAME.name: device.id.name,
            attr.HW_VENDOR.name: "NVIDIA",
            attr.HW_TYPE.name: attr.HwType.GPU.value,
        }
        if device.id.model:
            self._name[attr.HW_MODEL.name] = device.id.model
        if device.id.parent:
            self._name[attr.HW_PARENT.name] = device.id.parent
        self.peak = flops.peak_flops(device.id.model, DTYPE, sm_share=device.id.sm_share, override=peak)
        """Its dense peak FLOP/s, None where unknown."""
        self.peak_of = DTYPE if peak is None else "given"
        """The number format that holds for."""
        self.role: str | None = None
        """What the run uses it for, once that is known."""
        self.points: list[Point] = []
        """What the last reading gave."""

    @property
    def name(self) -> dict[str, Value]:
        """What every point of this device carries."""
        return self._name if self.role is None else {**self._name, attr.ROLE.name: self.role}

    def put(self, metric: Metric, value: float | None, attributes: Labels = NO_LABELS, by: float = 1.0) -> None:
        """Add a value times `by`, if there is one."""
        if value is not None:
            self.points.append(Point(metric, value * by, {**self.name, **attributes}))

    def count(
        self,
        metric: Metric,
        counter: Hashable,
        reading: FieldValue | float | None,
        attributes: Labels = NO_LABELS,
        by: float = 1.0,
    ) -> None:
        """Add what a driver's counter counted since its last reading to a counter of the session.

        Args:
            metric: the session's counter.
            counter: what tells the driver's counter from others of the device.
            reading: the driver's counter, None if it could not be read.
            attributes: beside the device's.
            by: what one of the driver's is in the metric's unit.
        """
        if reading is not None:
            self.count_all(metric, {counter: reading}, attributes, by)

    def count_all(
        self,
        metric: Metric,
        readings: Mapping[Hashable, FieldValue | float],
        attributes: Labels = NO_LABELS,
        by: float = 1.0,
    ) -> None:
        """As `count`, for several of the driver's that are one of the session's."""
        series = self._series(metric, attributes)
        total = None
        for counter, reading in readings.items():
            value, bits = reading if isinstance(reading, FieldValue) else (float(reading), None)
            total = self._tallies.follow(series, (self.device.id.uuid, counter), value, bits)
        self.put(metric, total, attributes, by)

    def increase(self, metric: Metric, amount: float, attributes: Labels = NO_LABELS) -> None:
        """Add to a counter of the session what happened since the last reading, in the metric's unit."""
        self.put(metric, self._tallies.add(self._series(metric, attributes), amount), attributes)

    def temperature(self, place: str, degrees: float | None, limit: attr.HwLimitType | None = None) -> None:
        """Add what a sensor says, which is a component of its own, or a limit of it."""
        uuid = self.device.id.uuid
        sensor: dict[str, Value] = {
            attr.HW_ID.name: f"{uuid}/{place}",
            attr.HW_PARENT.name: uuid,
            attr.HW_SENSOR_LOCATION.name: place,
        }
        if limit is None:
            self.put(m.HW_TEMPERATURE, degrees, sensor)
        else:
            self.put(m.HW_TEMPERATURE_LIMIT, degrees, {**sensor, attr.HW_LIMIT_TYPE.name: limit.value})

    def tell_peak(self) -> None:
        """Add the peak that MFU is measured against."""
        self.put(m.GPU_PEAK_FLOPS, self.peak, {attr.GPU_DTYPE.name: self.peak_of})

    def _series(self, metric: Metric, attributes: Labels) -> Hashable:
        # With the role in it: what was counted before it was known belongs to another series.
        return self.device.id.uuid, metric.name, self.role, tuple(attributes.items())
