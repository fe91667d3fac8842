"""An alert as its source says it: a symptom, when it holds, and what the run is losing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlotel.render import source, windows
from rlotel.render.condition import Condition, Threshold, condition, threshold
from rlotel.render.query import RUN
from rlotel.render.source import SourceError
from rlotel.render.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlotel.render.query import Scope

SEVERITIES = ("critical", "warning")
"""`critical` pages: a platform fact that costs GPU time now. `warning` can wait for the morning."""

_KEYS = {"alert", "symptom", "losing", "severity", "for", "when", "and", "unless"}


@dataclass(frozen=True)
class Alert:
    """One alert."""

    name: str
    symptom: str
    losing: str
    """A sentence on what the run is losing while this holds."""
    severity: str
    lasts: Threshold
    """How long it must hold before anyone is told."""
    when: Condition
    also: tuple[Condition, ...]
    """Each of them must hold for the same run as well."""
    unless: tuple[Condition, ...]
    """None of them may hold for the same run."""
    runbook: str
    """The text of its runbook, in Markdown."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All of them, with those that must not hold."""
        return (self.when, *self.also, *self.unless)

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """The thresholds that decide, in the order of the conditions."""
        return tuple(dict.fromkeys(one.threshold for one in self.conditions))

    def promql(self, scope: Scope, times: Windows) -> str:
        """The whole expression: true for each series for which the alert fires."""
        run = scope.spelling.label(RUN)
        text = self.when.promql(scope, times)
        if self.also or self.unless:
            text = f"({text})"
        for one in self.also:
            text += f" and on ({run}) ({one.promql(scope, times)})"
        for one in self.unless:
            text += f" unless on ({run}) ({one.promql(scope, times)})"
        return text


def load_all(folder: Path | None = None, values: Mapping[str, str] | None = None) -> list[Alert]:
    """Every alert of a folder, by default of those that come with rlotel.

    Args:
        folder: where the sources are, with a folder `runbooks` beside them.
        values: other values for thresholds, by their names, as text: a number, or a duration such as `45m`.

    Raises:
        SourceError: a source is wrong, or a value is for no threshold.
    """
    place = source.folder("alerts") if folder is None else folder
    rest = dict(values or {})
    alerts: list[Alert] = []
    for path in sorted(place.glob("*.yaml")):
        alerts += _load(path, rest)
    if rest:
        raise SourceError(f"no threshold {', '.join(rest)}; `rlotel alerts list` lists them")
    if twice := {alert.name for alert in alerts if [other.name for other in alerts].count(alert.name) > 1}:
        raise SourceError(f"{place}: several alerts are called {', '.join(sorted(twice))}")
    return alerts


def _load(path: Path, values: dict[str, str]) -> list[Alert]:
    content = source.read(path)
    source.refuse_unknown(content, {"thresholds", "alerts"}, str(path))
    thresholds = {}
    for name, entry in content["thresholds"].items():
        changed = {"value": _value(values.pop(name), entry["value"], name)} if name in values else {}
        thresholds[name] = threshold(name, {**entry, **changed}, str(path))
    return [_alert(entry, thresholds, path) for entry in content["alerts"]]


def _alert(entry: dict[str, Any], thresholds: dict[str, Threshold], path: Path) -> Alert:
    where = f"{path}: {entry.get('alert', 'an alert without name')}"
    source.refuse_unknown(entry, _KEYS, where)
    if missing := sorted({"alert", "symptom", "losing", "severity", "when"} - set(entry)):
        raise SourceError(f"{where}: {', '.join(missing)} is missing")
    if entry["severity"] not in SEVERITIES:
        raise SourceError(f"{where}: severity is one of {', '.join(SEVERITIES)}, and not {entry['severity']}")
    runbook = path.parent / "runbooks" / f"{entry['alert']}.md"
    if not runbook.exists():
        raise SourceError(f"{where}: write {runbook}: Meaning, Impact, Diagnosis, Mitigation")

    def conditions(key: str) -> tuple[Condition, ...]:
        return tuple(condition(one, thresholds, where) for one in entry.get(key, ()))

    return Alert(
        entry["alert"],
        entry["symptom"],
        entry["losing"],
        entry["severity"],
        Threshold("for", windows.seconds(entry.get("for", "0s")), "", duration=True),
        condition(entry["when"], thresholds, where),
        conditions("and"),
        conditions("unless"),
        runbook.read_text(encoding="utf-8"),
    )


def _value(text: str, default: Any, name: str) -> Any:
    if isinstance(default, str):
        return text
    try:
        return float(text)
    except ValueError:
        raise SourceError(f"threshold {name}: {text!r} is no number") from None
