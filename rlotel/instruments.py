"""From a metric of the model and a value to what the OpenTelemetry SDK exports.

The thread that trains never enters the SDK's metrics: counters and gauges are kept here and read by the SDK when
it exports; histogram values wait in a queue that the exporting thread empties. That is several times cheaper than
an SDK call, takes none of the SDK's locks on a training thread, and lets values be recorded before the identity
they will carry is known.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from weakref import WeakKeyDictionary

from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation

from rlotel import gates
from rlotel.errors import Faults, contained, log
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import RlotelRefusalReason as Reason
from rlotel.semconv.attributes import ValueKind
from rlotel.semconv.types import Metric, Owner

Value = str | bool | int
Attributes = Mapping[str, Value]
Key = tuple[tuple[str, Value], ...]
Readings = Iterable[tuple[float, Attributes]]

NONE: Attributes = MappingProxyType({})
LOOPS_FRESH = 3
"""A gauge that no loop has set for this many loops is gone: it describes a run that is no more."""
MOST_SERIES = 200
"""Attribute sets a metric may have in one process; a further one is refused."""
MOST_OF_A_NODE = 1000
"""The same for what is read of a node's GPUs, whose number is known."""
MOST_WAITING = 20_000
"""Histogram values that wait to be handed to the SDK; a further one is refused."""

_readers: WeakKeyDictionary[Meter, list[Instruments]] = WeakKeyDictionary()
"""Whose values a meter's instruments show. It makes each but once: a host's meter outlives a session."""

_SHARES = (".ratio", ".mfu", ".mbu")
_ALLOWED = {metric: frozenset(use.attribute.name for use in metric.attributes) for metric in m.ALL}


class Instruments:
    """All metrics of one process. Every method is safe in any thread and never raises."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._bound: Key = ()
        self._growing: dict[Metric, list[Callable[[], Readings]]] = {}
        self._warned: set[str] = set()
        self._meter: Meter | None = None
        self.relieve: Callable[[], None] = lambda: None
        """Called when many values wait: has `drain` called soon, in another thread than the one that trains."""
        self.reset()

    def reset(self) -> None:
        """Forget every value, as a forked child must: they are its parent's to report."""
        self._lock = threading.RLock()  # re-entrant: a gc callback may record while its thread records
        self._totals: dict[Metric, dict[Key, float]] = {metric: {} for metric in m.ALL}
        self._gauges: dict[Metric, dict[Key, tuple[float, int]]] = {metric: {} for metric in m.ALL}
        self._waiting: deque[tuple[Metric, float, Key]] = deque()
        self._relieving = False
        self._draining = threading.Lock()
        self._histograms: dict[Metric, Histogram] = {}
        self._series: dict[Metric, set[Key]] = {metric: set() for metric in m.ALL}
        self._keys: dict[Metric, dict[tuple[tuple[str, object], ...], Key]] = {metric: {} for metric in m.ALL}
        self._loops = 0
        self._meter = None

    # What happens is told here, on the training thread.

    @contained
    def add(self, metric: Metric, value: object, attributes: Attributes = NONE) -> None:
        """Count `value` more, in the metric's unit."""
        amount = self.amount(metric.name, value)
        if amount is None or (key := self._key(metric, attributes)) is None:
            return
        with self._lock:
            totals = self._totals[metric]
            totals[key] = totals.get(key, 0.0) + amount

    @contained
    def set(self, metric: Metric, value: object, attributes: Attributes = NONE) -> None:
        """Replace a gauge's value. One that is not finite removes the gauge and is counted as a finding."""
        key = self._key(metric, attributes)
        if key is None:
            return
        try:
            level = gates.number(value)
            if metric.name.endswith(_SHARES) and (-math.inf < level < 0 or 1 < level < math.inf):
                raise gates.Refused(Reason.NEGATIVE if level < 0 else Reason.ABOVE_ONE)
        except gates.Refused as refused:
            # Not the last good value either: it would look like the present one.
            self._gauges[metric].pop(key, None)
            self.refuse(metric.name, refused.reason)
            return
        if kind := gates.kind_of_nonfinite(level):
            self._gauges[metric].pop(key, None)
            self._nonfinite(metric, kind, attributes)
        else:
            self._gauges[metric][key] = (level, self._loops)

    @contained
    def record(self, metric: Metric, value: object, attributes: Attributes = NONE) -> None:
        """Put one value into a histogram, in the metric's unit."""
        amount, key = self.amount(metric.name, value), self._key(metric, attributes)
        if amount is None or key is None:
            return
        if len(self._waiting) >= MOST_WAITING:
            self.refuse(metric.name, Reason.QUEUE_FULL)
            return
        self._waiting.append((metric, amount, key))
        if len(self._waiting) >= MOST_WAITING // 2 and not self._relieving:
            self._relieving = True
            self.relieve()

    def amount(self, what: str, value: object) -> float | None:
        """A number to count, or None if it is none that can be: refused and counted."""
        try:
            amount = gates.number(value)
            if amount >= 0 and not gates.kind_of_nonfinite(amount):
                return amount
            reason = Reason.NEGATIVE if amount < 0 else Reason.NOT_A_NUMBER
        except gates.Refused as refused:
            reason = refused.reason
        self.refuse(what, reason)
        return None

    def value(self, metric: Metric, attributes: Attributes = NONE) -> float | None:
        """What a counter has counted or a gauge shows, all series with these attributes; None without one."""
        wanted = set(attributes.items())
        with self._lock:
            values = [value for key, value in list(self._totals[metric].items()) if wanted <= set(key)]
            values += [value for key, (value, _) in list(self._gauges[metric].items()) if wanted <= set(key)]
        return sum(values) if values else None

    def watch(self, metric: Metric, read: Callable[[], Readings]) -> None:
        """Let `read` say a gauge's values whenever they are exported: ages grow without anyone's call.

        `read` runs in the exporting thread; what it does not yield is absent.
        """
        self._growing.setdefault(metric, []).append(read)

    def loop_finished(self) -> None:
        """Let gauges age by one loop."""
        self._loops += 1

    def start_at_zero(self, owner: Owner) -> None:
        """Give the counters that `owner` reports a true 0, so that a first event is an increase."""
        for metric in m.ALL:
            if metric.starts_at_zero and metric.owner == owner:
                for attributes in metric.zeros:
                    self.add(metric, 0, attributes)

    # What is exported is asked for here, in the exporting thread.

    def bind(self, meter: Meter, identity: Attributes) -> None:
        """Make the SDK's instruments; from here on every point carries `identity`."""
        self._bound, self._meter = tuple(identity.items()), meter
        self._relieving = False
        if meter in _readers:
            _readers[meter][:] = [self]
            return
        _readers[meter] = readers = [self]
        for metric in m.ALL:
            observe = partial(_observe, readers, metric, meter)
            if metric.instrument == "counter":
                meter.create_observable_counter(metric.name, [observe], metric.unit, metric.brief)
            elif metric.instrument == "updowncounter":
                meter.create_observable_up_down_counter(metric.name, [observe], metric.unit, metric.brief)
            elif metric.instrument == "gauge":
                meter.create_observable_gauge(metric.name, [observe], metric.unit, metric.brief)

    def unbind(self) -> None:
        """Report nothing more, also to a provider that lives on."""
        if (meter := self._meter) is not None:
            _readers[meter].clear()
        self._meter = None

    def observe(self, metric: Metric, meter: Meter) -> list[Observation]:
        """A metric's values, to be exported through `meter`."""
        if meter is not self._meter:
            return []  # an earlier session's instrument, or a forked child's copy of its parent's
        with self.faults.contain(f"export of {metric.name}"):
            self._drain(meter)
            return [Observation(value, dict(key + self._bound)) for key, value in self._values(metric)]
        return []

    def _values(self, metric: Metric) -> list[tuple[Key, float]]:
        oldest = self._loops - LOOPS_FRESH
        with self._lock:
            values = list(self._totals[metric].items())
            values += [(key, value) for key, (value, when) in list(self._gauges[metric].items()) if when >= oldest]
        for read in self._growing.get(metric, ()):
            for value, attributes in read():
                key = self._key(metric, attributes)
                if key is not None:
                    values.append((key, float(value)))
        return values

    def drain(self) -> None:
        """Hand the waiting values to the SDK, if it is there already; in any thread but one that trains."""
        if (meter := self._meter) is not None:
            with self.faults.contain("drain"):
                self._drain(meter)

    def _drain(self, meter: Meter) -> None:
        """Hand the waiting values to the SDK. It runs before the SDK collects, so they leave with this export."""
        with self._draining:
            self._relieving = False
            for _ in range(len(self._waiting)):  # not what comes meanwhile, or this might never end
                metric, value, key = self._waiting.popleft()
                histogram = self._histograms.get(metric)
                if histogram is None:
                    histogram = self._histograms[metric] = meter.create_histogram(
                        metric.name,
                        metric.unit,
                        metric.brief,
                        explicit_bucket_boundaries_advisory=list(metric.buckets),
                    )
                histogram.record(value, dict(key + self._bound))

    # The gates.

    def _key(self, metric: Metric, attributes: Attributes) -> Key | None:
        """The attributes the metric declares, as a key; None if it may have no further series."""
        given = tuple(attributes.items()) if attributes else ()
        try:
            return self._keys[metric][given]
        except Exception:  # noqa: BLE001 - it is new, or cannot be hashed or compared, and may raise anything
            return self._new_key(metric, given)

    def _new_key(self, metric: Metric, given: tuple[tuple[str, object], ...]) -> Key | None:
        allowed = _ALLOWED[metric]
        try:
            known = [(name, value) for name, value in given if name in allowed and value is not None]
            key = tuple(sorted((name, gates.attribute(name, value)) for name, value in known))
        except gates.Refused as refused:
            self.refuse(metric.name, refused.reason)
            return None
        with self._lock:
            series = self._series[metric]
            if key not in series:
                if len(series) >= (MOST_OF_A_NODE if metric.owner == "node" else MOST_SERIES):
                    self.refuse(metric.name, Reason.CARDINALITY)
                    return None
                series.add(key)
            keys = self._keys[metric]
            # Text only: to a dictionary, 1 and True are the same.
            if len(keys) < MOST_SERIES and all(type(value) is str for _, value in given):
                keys[given] = key
        return key

    def refuse(self, what: str, reason: Reason) -> None:
        """A value is left out: it is counted, and logged the first time."""
        place = f"{what}/{reason}"
        if place not in self._warned:
            self._warned.add(place)
            log.warning("a value for %s was left out: %s (said once, counted always)", what, reason)
        if what != m.RLOTEL_VALUES_REFUSED.name:
            self.add(m.RLOTEL_VALUES_REFUSED, 1, {attr.RLOTEL_REFUSAL_REASON.name: reason.value})

    def _nonfinite(self, metric: Metric, kind: ValueKind, attributes: Attributes) -> None:
        place = f"{metric.name}/{kind}"
        if place not in self._warned:
            self._warned.add(place)
            log.warning("%s is %s: its gauge is gone until a finite value comes (said once)", metric.name, kind)
        found: dict[str, Value] = {attr.VALUE_NAME.name: metric.name, attr.VALUE_KIND.name: kind.value}
        if loss := attributes.get(attr.LOSS_TYPE.name):
            found[attr.LOSS_TYPE.name] = loss
        self.add(m.TRAIN_NONFINITE, 1, found)


def _observe(
    readers: list[Instruments], metric: Metric, meter: Meter, _options: CallbackOptions
) -> list[Observation]:
    return [observation for one in readers for observation in one.observe(metric, meter)]
