"""The thresholds of alerts that a panel can show: those on the very thing it draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlotel.render.alert import Alert
    from rlotel.render.condition import Condition
    from rlotel.render.dashboard import Dashboard, Panel
    from rlotel.render.windows import Windows

_DIRECTIONS = {"above": "ABOVE", "below": "BELOW"}
_LEVELS = {"last", "highest", "lowest", "mean", "age"}
"""Statistics that show one quantity in different ways: a threshold on one is a line in a panel of another."""


@dataclass(frozen=True)
class Line:
    """A threshold as a panel shows it."""

    label: str
    value: float
    direction: str
    severity: str


def lines(dashboard: Dashboard, alerts: Iterable[Alert], times: Windows) -> dict[Panel, tuple[Line, ...]]:
    """For each panel that has any, its thresholds. Zero is no line: any point above it is seen as it is."""
    known = [(alert, condition) for alert in alerts for condition in (alert.when, *alert.also)]
    found: dict[Panel, tuple[Line, ...]] = {}
    for panel in dashboard.panels:
        drawn = {
            alert.name: Line(
                alert.name, condition.threshold.at(times), _DIRECTIONS[condition.compared], alert.severity
            )
            for alert, condition in known
            if condition.compared in _DIRECTIONS and condition.threshold.at(times) and _shown(panel, condition)
        }
        if drawn and panel.draw != "table":
            found[panel] = tuple(drawn.values())
    return found


def _shown(panel: Panel, condition: Condition) -> bool:
    asked = condition.selection
    for series in panel.series:
        chosen = series.selection
        same = chosen.statistic == asked.statistic or {chosen.statistic, asked.statistic} <= _LEVELS
        told_apart = all(label in chosen.by for label, _, _ in asked.where)
        if (chosen.metric, chosen.of) == (asked.metric, asked.of) and same:
            return not condition.lasting and (chosen.where == asked.where or (told_apart and not chosen.where))
    return False
