"""How far back queries look. An iteration takes minutes: a window must hold at least two of them.

The defaults are constants, so that what is committed can be tested; a longer iteration time widens them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
WINDOW_S = 1800
BASELINE_S = 6 * 3600
WINDOW_LOOPS = 2
"""How many iterations a window must hold. A rate needs two points of a counter that moves once an iteration."""
BASELINE_LOOPS = 20


@dataclass(frozen=True)
class Windows:
    """The two windows, for iterations of a given length in seconds."""

    loop_time_s: float = WINDOW_S / WINDOW_LOOPS

    @property
    def window_s(self) -> int:
        """What a rate, an increase or a quantile is taken over."""
        return self.at_least(WINDOW_S, WINDOW_LOOPS)

    @property
    def baseline_s(self) -> int:
        """What counts as usual for a run."""
        return self.at_least(BASELINE_S, BASELINE_LOOPS)

    def at_least(self, seconds: float, loops: float) -> int:
        """The time given, or that of so many iterations if they take longer: whole minutes."""
        return int(-(-max(seconds, loops * self.loop_time_s) // 60)) * 60


def seconds(text: str) -> int:
    """A duration such as `90s`, `30m` or `1d`, in seconds.

    Raises:
        ValueError: it is none.
    """
    found = re.fullmatch(r"(\d+)([smhd])", text)
    if found is None:
        raise ValueError(f"{text!r} is no duration; write a whole number and s, m, h or d, such as 30m")
    return int(found[1]) * _SECONDS[found[2]]


def text(seconds: float) -> str:
    """A duration as PromQL writes it."""
    whole = int(seconds)
    for unit in "dhm":
        if whole and whole % _SECONDS[unit] == 0:
            return f"{whole // _SECONDS[unit]}{unit}"
    return f"{whole}s"


def words(seconds: float) -> str:
    """A duration for people."""
    written = text(seconds)
    return written[:-1] + {"s": " s", "m": " min", "h": " h", "d": " d"}[written[-1]]
