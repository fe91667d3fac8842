"""Moments as people write them into logs: seconds, milliseconds and less since 1970, or ISO 8601."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from rlotel import gates

EARLIEST = 1e8
"""Seconds: a number below, before 1973, is a length of time and no moment."""
LATEST = 1e10
"""Seconds: the year 2286. OTLP has no moments after 2554."""
_FRACTION = re.compile(r"\.(\d{1,6})\d*")
_UNITS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""What a number is at least, and what makes seconds of it: in seconds, 1e11 is the year 5138."""


def moment(value: Any) -> float | None:
    """Seconds since 1970; None if it is no moment.

    A text without a time zone is in that of this machine, as trainers write it.
    """
    if isinstance(value, str):
        try:
            # Python 3.10 takes fractions of three or six digits only, and no Z.
            text = _FRACTION.sub(lambda found: f".{found[1]:0<6}", value.strip().replace("Z", "+00:00"))
            number = datetime.fromisoformat(text).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    else:
        try:
            number = gates.number(value)
        except gates.Refused:
            return None
        number *= next((factor for least, factor in _UNITS if number >= least), 1.0)
    return number if EARLIEST <= number < LATEST else None
