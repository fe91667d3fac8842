"""The kinds of object the semantic model is generated into: attributes, metrics and spans.

They are objects rather than bare strings so that instruments, docs, panels, alerts and checks all read a
name, a unit and a list of buckets from the same place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Instrument = Literal["counter", "updowncounter", "gauge", "histogram"]
Signal = Literal["latency", "traffic", "errors", "saturation", "run", "rlotel"]
Requirement = Literal["required", "conditionally_required", "recommended", "opt_in"]
Owner = Literal["launcher", "loop", "node", "process"]


@dataclass(frozen=True, eq=False)
class Attribute:
    """A key that a span, a metric point or a Resource may carry."""

    name: str
    type: Literal["string", "int", "double", "boolean"]
    brief: str
    stability: str
    members: tuple[str, ...] = ()
    """The values an enumeration lists; empty where any value goes."""
    closed: bool = False
    """Whether only the listed values are right. Otherwise they are the well-known ones."""
    examples: tuple[str | int | float | bool, ...] = ()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Use:
    """An attribute as one metric or span uses it."""

    attribute: Attribute
    requirement: Requirement


@dataclass(frozen=True, eq=False)
class Metric:
    """One metric of the model. Compared by identity: the model holds one object a name."""

    name: str
    instrument: Instrument
    unit: str
    brief: str
    signal: Signal
    """The golden signal it serves; `run` and `rlotel` are about the run and about rlotel itself."""
    origin: str
    """Where the name was taken from (proposal, google_dashboard, nemo_rl, opentelemetry, rlotel)."""
    stability: str
    owner: Owner
    """The process that reports it, so that nothing is counted twice."""
    attributes: tuple[Use, ...] = ()
    """What it may carry besides the identity of the run, which every point has."""
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram, in the metric's unit."""
    zeros: tuple[Mapping[str, str], ...] = ()
    """The attribute sets, identity aside, that are exported as a true 0 from the start, so that a first event
    is an increase. Empty for what does not start at zero."""

    @property
    def starts_at_zero(self) -> bool:
        """Whether it is there, as a true 0, from the start of a session."""
        return bool(self.zeros)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Span:
    """One span of the model. All are of kind INTERNAL."""

    name: str
    brief: str
    origin: str
    stability: str
    attributes: tuple[Use, ...] = ()

    def __str__(self) -> str:
        return self.name
