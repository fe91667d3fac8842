"""Timing several things against each other: interleaved, so that whatever else the machine does hits all alike."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

ROUNDS = 41
Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    seconds: float
    """The median of one."""
    against: str = ""
    baseline: float | None = None
    """The median of what it is compared with."""

    @property
    def ratio(self) -> float | None:
        """How many times the baseline it takes."""
        return None if self.baseline is None else self.seconds / self.baseline


def calls(works: Mapping[str, Work], times: int, between: Work = lambda: None) -> dict[str, float]:
    """Median seconds of one call of each; `between` runs untimed after each series of `times` calls.

    Process time is taken: waiting for other programs of the machine is not what is measured.
    """
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            began = time.thread_time()
            for _ in range(times):
                work()
            taken[name].append((time.thread_time() - began) / times)
            between()
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def programs(codes: Mapping[str, str], rounds: int = 9) -> dict[str, float]:
    """Median seconds that a fresh Python takes for each, less those of an empty one."""
    taken: dict[str, list[float]] = {name: [] for name in ("", *codes)}
    for _ in range(rounds):
        for name, code in {"": "", **codes}.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            taken[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    return {name: medians[name] - medians[""] for name in codes}
