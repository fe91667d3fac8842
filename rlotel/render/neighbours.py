"""Metrics that others send about the machines a run uses: NVIDIA's DCGM and GKE itself.

They are no part of the model. What is said about them here comes from `dashboards/neighbours.yaml`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from rlotel.render import source
from rlotel.semconv.types import Metric


@dataclass(frozen=True, eq=False)
class Neighbour(Metric):
    """A metric of somebody else's: spelled the same in every backend that has it."""

    labels: tuple[str, ...] = ()
    """The labels that it may be grouped by."""
    resource: str | None = None
    """The monitored resource, for metrics that only Google Cloud has; None for Prometheus' own."""


@cache
def by_name() -> dict[str, Neighbour]:
    """Every neighbour.

    Raises:
        SourceError: the file that lists them is wrong.
    """
    path = source.folder("dashboards") / "neighbours.yaml"
    return {name: _neighbour(name, entry, f"{path}: {name}") for name, entry in source.read(path).items()}


def _neighbour(name: str, entry: dict[str, Any], where: str) -> Neighbour:
    source.refuse_unknown(entry, {"instrument", "unit", "brief", "labels", "resource"}, where)
    return Neighbour(
        name=name,
        instrument=entry["instrument"],
        unit=entry["unit"],
        brief=entry["brief"],
        signal="saturation",
        origin="neighbour",
        stability="stable",
        owner="node",
        labels=tuple(entry["labels"]),
        resource=entry.get("resource"),
    )
