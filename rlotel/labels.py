"""What a user or a framework gives as an attribute, made what the model says it is.

What cannot be is left out, counted and said once; nothing here raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlotel import gates
from rlotel.instruments import Instruments
from rlotel.semconv import attributes as attr

MOST_NAMES = 64
"""Different phase names in one process; further ones are reported as `_OTHER`."""
OTHER_NAME = "_OTHER"


class Labels:
    """The attributes of one process's spans and points."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self._names: set[str] = set()

    def phase_name(self, name: str) -> str:
        """The name of a phase, or `_OTHER` if there are too many already."""
        try:
            name = gates.text(name)
        except gates.Refused as refused:
            self._instruments.refuse(attr.PHASE_NAME.name, refused.reason)
            return OTHER_NAME
        if name in self._names or len(self._names) < MOST_NAMES:
            self._names.add(name)
            return name
        self._instruments.refuse(attr.PHASE_NAME.name, attr.RlotelRefusalReason.CARDINALITY)
        return OTHER_NAME

    def typed(self, attributes: Mapping[str, object]) -> dict[str, Any]:
        """The attributes as the model types them; None is left out without a word."""
        typed: dict[str, Any] = {}
        if not attributes:
            return typed
        for name, value in attributes.items():
            if value is None:
                continue
            try:
                typed[name] = gates.attribute(name, value)
            except gates.Refused as refused:
                self._instruments.refuse(name, refused.reason)
        return typed
