"""Reads all GPUs of a node, again and again: what one reading gives, who is lost, and when the driver is gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rlotel.collectors import health, readings
from rlotel.collectors.devices import Lost, find
from rlotel.collectors.health import Health
from rlotel.collectors.nvml import CallFailed, Nvml
from rlotel.collectors.reader import Point, Reader
from rlotel.collectors.tallies import Tallies
from rlotel.collectors.visible import GpuId
from rlotel.collectors.xids import Xids
from rlotel.errors import log
from rlotel.instruments import Attributes
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.types import Metric

SELDOM = 15.0
"""Seconds between readings of what changes by the hour: limits, ECC, remapped rows."""
RETRY = 60.0
"""Seconds until a GPU that is lost, or could not be opened, is tried again."""
SILENT_READINGS = 3
"""Readings without any value from any GPU, after which the driver counts as gone."""


@dataclass(frozen=True)
class Sample:
    """What one reading of the node gave."""

    at: float
    """When, by the sampler's clock, in seconds."""
    seconds: float
    """Wall time that the reading took."""
    points: Mapping[Metric, list[tuple[float, Attributes]]]


@dataclass
class _Gpu:
    """A GPU between two readings."""

    reader: Reader
    slices: list[Reader]
    seen: float | None = None
    """When it was last read."""
    lost_until: float | None = None
    """When it is tried again."""
    seldom: list[Point] = field(default_factory=list)
    seldom_at: float | None = None
    health: Health | None = None
    xids: Counter[int] = field(default_factory=Counter)
    """Errors by number; 0 once they are counted."""


class Sampler:
    """All GPUs of the node. One thread uses it.

    Args:
        nvml: the library; opened here.
        now: seconds of a clock that only goes forward.
        failed: told the `error.type` of every value that could not be read.
        peak: what the user says a GPU's peak FLOP/s is.
    """

    def __init__(
        self, nvml: Nvml, now: Callable[[], float], failed: Callable[[str], None], peak: float | None = None
    ) -> None:
        self._nvml = nvml
        self._now = now
        self._failed = failed
        self._peak = peak
        self._tallies = Tallies()
        self._gpus: dict[str, _Gpu] = {}
        self._known: dict[str, Reader] = {}
        """All that were ever read, for the state of one that has disappeared."""
        self._roles: dict[str, str] = {}
        self._xids: Xids | None = None
        self._silent = 0
        self._missing = 0
        self._look_again = 0.0
        self._said: set[object] = set()

    def open(self) -> None:
        """Open the library and find the GPUs.

        Raises:
            ModuleNotFoundError: nvidia-ml-py is not installed.
            CallFailed: there is no driver, or it does not answer.
        """
        self._nvml.open()
        self._silent = 0
        self._find()

    def close(self) -> None:
        """Let go of the library. What was counted stays."""
        if self._xids is not None:
            self._xids.close()
            self._xids = None
        self._gpus = {}
        self._nvml.close()

    @property
    def gpus(self) -> tuple[GpuId, ...]:
        """The GPUs that were found, in NVML's order."""
        found = (gpu.reader.device.id for gpu in self._gpus.values())
        return tuple(sorted(found, key=lambda one: one.index))

    def assign(self, roles: Mapping[str, str]) -> None:
        """Tell what the run uses devices for, by UUID."""
        self._roles = dict(roles)

    def read(self) -> Sample:
        """Read everything once.

        Raises:
            CallFailed: the driver is gone; close, and open again later.
        """
        started = self._now()
        if self._missing and started >= self._look_again:
            self._find()
        for uuid, gpu in self._gpus.items():
            self._read_gpu(uuid, gpu)
        readers = [reader for gpu in self._gpus.values() for reader in (gpu.reader, *gpu.slices)]
        said_something = any(reader.points for reader in readers)
        self._silent = 0 if said_something or not readers else self._silent + 1
        if self._silent >= SILENT_READINGS:
            raise CallFailed("reading all GPUs", "no_answer", None, "none of them gives any value")
        self._hear()
        points = [point for reader in readers for point in reader.points]
        points += self._gone()
        by_metric: dict[Metric, list[tuple[float, Attributes]]] = {}
        for metric, value, attributes in points:
            by_metric.setdefault(metric, []).append((value, attributes))
        now = self._now()
        return Sample(now, now - started, by_metric)

    # One GPU.

    def _read_gpu(self, uuid: str, gpu: _Gpu) -> None:
        now = self._now()
        for reader in (gpu.reader, *gpu.slices):
            role = self._roles.get(reader.device.id.uuid)
            if role != reader.role:
                reader.role, gpu.seldom_at = role, None  # all of it in the same turn
            reader.points = []
        if gpu.lost_until is not None:
            if now < gpu.lost_until:
                _state(gpu.reader, attr.HwState.FAILED)
                return
            gpu.lost_until = None
        elapsed = None if gpu.seen is None else now - gpu.seen
        try:
            self._read_all(gpu, now, elapsed)
        except Lost as lost:
            gpu.lost_until = now + RETRY
            gpu.seldom, gpu.seldom_at, gpu.health, gpu.seen = [], None, None, None
            for reader in (gpu.reader, *gpu.slices):
                reader.points = []
            _state(gpu.reader, attr.HwState.FAILED)
            self._say(uuid, f"{gpu.reader.device.id.name} ({uuid}) is gone ({lost}); the others are read on")

    def _read_all(self, gpu: _Gpu, now: float, elapsed: float | None) -> None:
        reader = gpu.reader
        clock, reasons = readings.read_often(reader, now, elapsed)
        gpu.seen = now
        for one in gpu.slices:
            readings.read_slice(one, now, clock)
        often, reader.points = reader.points, []
        if gpu.seldom_at is None or now - gpu.seldom_at >= SELDOM:
            gpu.health, gpu.seldom_at = health.read(reader), now
            gpu.seldom = reader.points
        if not often:
            return  # what was read a while ago does not stand for a GPU that says nothing now
        reader.points = often + gpu.seldom
        state = health.judge(reader, gpu.health, reasons)
        if state is not None:
            _state(reader, state)
            if not gpu.slices:
                reader.tell_peak()

    # The node.

    def _find(self) -> None:
        """Open what is there and not open yet."""
        count = self._nvml.call("nvmlDeviceGetCount")
        before = len(self._gpus)
        for device in find(self._nvml, self._failed, known=self._gpus):
            reader = Reader(device, self._tallies, self._peak)
            slices = [Reader(one, self._tallies, self._peak) for one in device.slices]
            self._gpus[device.id.uuid] = _Gpu(reader, slices)
            self._known[device.id.uuid] = reader
        self._missing = max(0, count - len(self._gpus))
        self._look_again = self._now() + RETRY
        if self._missing:
            self._say(
                "missing", f"{self._missing} of {count} GPUs cannot be read; they are tried again every minute"
            )
        if self._xids is None or len(self._gpus) > before:
            if self._xids is not None:
                self._xids.close()
            self._xids = Xids(self._nvml, [gpu.reader.device for gpu in self._gpus.values()])

    def _hear(self) -> None:
        if self._xids is None:
            return
        for code, uuid in self._xids.take(self._now()):
            if (gpu := self._gpus.get(uuid)) is not None:
                gpu.xids[code] += 1
                self._say((uuid, code), f"{gpu.reader.device.id.name} ({uuid}) reports XID {code}")
        for uuid in self._xids.heard & self._gpus.keys():
            gpu = self._gpus[uuid]
            gpu.reader.increase(m.HW_ERRORS, sum(gpu.xids.values()), {attr.ERROR_TYPE.name: "xid"})
            for code, count in gpu.xids.items():
                gpu.reader.increase(m.GPU_XID_ERRORS, count, {attr.GPU_XID_CODE.name: code})
                gpu.xids[code] = 0

    def _gone(self) -> list[Point]:
        """The state of GPUs that were here once and cannot be found any more."""
        points: list[Point] = []
        for uuid in self._known.keys() - self._gpus.keys():
            reader = self._known[uuid]
            reader.points = []
            _state(reader, attr.HwState.FAILED)
            points += reader.points
        return points

    def _say(self, what: object, text: str) -> None:
        if what not in self._said:
            self._said.add(what)
            log.warning("rlotel: %s", text)


def _state(reader: Reader, present: attr.HwState) -> None:
    for state in health.STATES:
        reader.put(m.HW_STATUS, float(state is present), {attr.HW_STATE.name: state.value})
