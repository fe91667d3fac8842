"""When an alert fires: selections compared with thresholds that have names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlotel.render import query, windows
from rlotel.render.query import RUN
from rlotel.render.selection import KEYS, Selection, selection
from rlotel.render.source import SourceError, refuse_unknown
from rlotel.render.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlotel.render.query import Scope

_COMPARED = {
    "above": ">",
    "at_least": ">=",
    "below": "<",
    "above_usual": ">",
    "below_usual": "<",
    "below_highest": "<",
}
"""How a condition compares. The last three compare with so many times what is usual for the run."""


@dataclass(frozen=True)
class Threshold:
    """A number with a name, and the reason why it is this one. A duration may grow with the iteration time."""

    name: str
    value: float
    because: str
    duration: bool = False
    loops: float = 0.0
    """Of a duration: not less than so many iterations."""

    def at(self, times: Windows) -> float:
        """Its value for runs with this iteration time."""
        return times.at_least(self.value, self.loops) if self.duration else self.value

    def text(self, times: Windows) -> str:
        """Its value for people."""
        return windows.words(self.at(times)) if self.duration else f"{self.value:g}"


@dataclass(frozen=True)
class Condition:
    """One comparison. It holds for those series of the selection for which the comparison is true."""

    selection: Selection
    compared: str
    threshold: Threshold
    usual_of: Selection | None = None
    """What the usual is taken of, if not of the selection itself."""
    ended: bool = False
    """Whether a series counts that has ended: its most recent value is taken."""
    lasting: bool = False
    """Whether the baseline is looked back over, and not the window."""

    def promql(self, scope: Scope, times: Windows) -> str:
        """The comparison as PromQL."""
        baseline = scope.over(times.baseline_s)
        own = baseline if self.lasting else scope
        left = query.most_recent(self.selection, baseline) if self.ended else query.query(self.selection, own)
        limit = f"{self.threshold.at(times):.15g}"
        operator = _COMPARED[self.compared]
        if self.compared.endswith("_usual"):
            return f"{left} {operator} {limit} * ({query.usual(self.usual_of or self.selection, baseline)})"
        if self.compared.endswith("_highest"):
            return (
                f"{left} {operator} {limit} * ({query.query(replace(self.selection, statistic='peak'), baseline)})"
            )
        return f"{left} {operator} {limit}"


def condition(entry: Mapping[str, Any], thresholds: Mapping[str, Threshold], where: str) -> Condition:
    """A condition from its source.

    Raises:
        SourceError: it does not fit the model, or its threshold is not there.
    """
    refuse_unknown(entry, KEYS | set(_COMPARED) | {"usual_of", "ended", "lasting"}, where)
    compared = [name for name in _COMPARED if name in entry]
    if len(compared) != 1:
        raise SourceError(f"{where}: compare it with one threshold, by one of {', '.join(_COMPARED)}")
    name = entry[compared[0]]
    if name not in thresholds:
        raise SourceError(f"{where}: no threshold {name!r}; there are {', '.join(thresholds)}")
    return Condition(
        by_run(entry, where),
        compared[0],
        thresholds[name],
        by_run(entry["usual_of"], where) if "usual_of" in entry else None,
        ended=entry.get("ended", False),
        lasting=entry.get("lasting", False),
    )


def by_run(entry: Mapping[str, Any], where: str) -> Selection:
    """A selection whose result says which run it is about; alerts have no other kind."""
    chosen = {key: value for key, value in entry.items() if key in KEYS}
    return selection({**chosen, "by": [RUN, *chosen.get("by", [])]}, where)


def threshold(name: str, entry: Mapping[str, Any], where: str) -> Threshold:
    """A threshold from its source.

    Raises:
        SourceError: it has no reason, or its value is neither a number nor a duration.
    """
    refuse_unknown(entry, {"value", "because", "loops"}, where)
    if "because" not in entry:
        raise SourceError(f"{where}: threshold {name}: say because of what")
    value = entry["value"]
    if isinstance(value, str):
        try:
            return Threshold(name, windows.seconds(value), entry["because"], True, float(entry.get("loops", 0)))
        except ValueError as error:
            raise SourceError(f"{where}: threshold {name}: {error}") from error
    if "loops" in entry:
        raise SourceError(f"{where}: threshold {name}: only a duration grows with the iteration time")
    return Threshold(name, float(value), entry["because"])
