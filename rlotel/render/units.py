"""The unit of what a panel shows, as each backend wants to be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlotel.semconv.types import Metric

# How the last word of a name says that its unit of 1 is a share, as semconv/README.md has it.
_SHARES = {"ratio", "mfu", "mbu", "ofu", "utilization", "occupancy"}


@dataclass(frozen=True)
class Unit:
    """A unit in UCUM (Cloud Monitoring), in Grafana's words, and for an axis."""

    ucum: str
    grafana: str
    words: str


SHARE = Unit("10^2.%", "percentunit", "share")
_NUMBER = Unit("1", "short", "")
_KNOWN = {
    "s": Unit("s", "s", "s"),
    "By": Unit("By", "bytes", "bytes"),
    "By/s": Unit("By/s", "Bps", "bytes/s"),
    "W": Unit("W", "watt", "W"),
    "J": Unit("J", "joule", "J"),
    "J/s": Unit("W", "watt", "W"),
    "Cel": Unit("Cel", "celsius", "°C"),
    "Hz": Unit("Hz", "hertz", "Hz"),
    "%": Unit("%", "percent", "%"),
    "MiBy": Unit("MiBy", "mbytes", "MiB"),
    "s/s": SHARE,
    "share": SHARE,
    "{flop}/s": Unit("{flop}/s", "flops", "FLOP/s"),
}


def of(ucum: str) -> Unit:
    """A unit of the model, or one made of it. A unit without dimension shows as a bare number."""
    if ucum in _KNOWN:
        return _KNOWN[ucum]
    things = ucum.removesuffix("/s").strip("{}")
    if ucum in ("", "1"):
        return _NUMBER
    if ucum.endswith("/s"):
        return Unit("1/s" if things == "1" else ucum, "cps", "per second" if things == "1" else f"{things}s/s")
    return Unit(ucum, "short", f"{things}s")


def of_metric(metric: Metric) -> Unit:
    """The unit of a metric's own values."""
    return SHARE if is_share(metric) else of(metric.unit)


def is_share(metric: Metric) -> bool:
    """Whether its values are shares of a whole, between 0 and 1."""
    return metric.unit == "1" and metric.instrument == "gauge" and metric.name.rpartition(".")[2] in _SHARES
