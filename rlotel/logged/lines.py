"""JSON lines: what one line of a file logs, when, and for which step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rlotel.logged.times import moment

LONGEST = 1024 * 1024
"""Bytes of a line; a longer one is no line of numbers."""
TIMES = ("_timestamp", "timestamp", "time", "ts", "wall_time", "date", "datetime")
"""Keys that have a line's time where nobody says which, in the order they are tried."""
STEPS = ("_step", "step", "global_step", "iteration")
"""The same for its step."""


def parse(line: bytes | str) -> dict[str, Any] | None:
    """The object in a line, NaN and Infinity as Python writes them; None if there is none."""
    if len(line) > LONGEST:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def time_of(values: Mapping[str, Any], key: str | None) -> float | None:
    """When a line was written, in seconds since 1970: what `key` says, or one of the usual ones."""
    found = (moment(values.get(name)) for name in ((key,) if key else TIMES))
    return next((time for time in found if time is not None), None)


def split(values: Mapping[str, Any], step: str | None) -> tuple[dict[str, Any], object]:
    """What was logged without the usual keys of time and step, and the step that these say.

    Where a key is known to have the step, it is left for the table to find.
    """
    usual = TIMES if step else (*TIMES, *STEPS)
    bare = {key: value for key, value in values.items() if key not in usual or key == step}
    return bare, None if step else next((values[name] for name in STEPS if name in values), None)
