"""The cases that alerts are tested with, as promtool's unit tests, in any spelling that promtool reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlotel.render import selection, source
from rlotel.render.query import RUN
from rlotel.render.source import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rlotel.render.alert import Alert
    from rlotel.render.spelling import Spelling

RUN_ID = "r1"
_FILE = "alerts.yaml"


def promtool_tests(
    alerts: Sequence[Alert], spelling: Spelling, rule_file: str, folder: Path | None = None
) -> dict[str, Any]:
    """The content of a file for `promtool test rules`. Each alert has a case that fires, and one that is silent.

    Raises:
        SourceError: an alert has no such case, or a case is about no alert or no metric.
    """
    path = (source.folder("alerts") if folder is None else folder) / "cases" / _FILE
    content = source.read(path)
    cases = content["cases"]
    if unknown := sorted(set(cases) - {alert.name for alert in alerts}):
        raise SourceError(f"{path}: no alert {', '.join(unknown)}")
    tests = []
    for alert in alerts:
        names = list(cases.get(alert.name, ()))
        if not any(_fires(name) for name in names) or all(_fires(name) for name in names):
            raise SourceError(f"{path}: {alert.name}: write a case that fires and one that is silent")
        for name in names:
            where = f"{path}: {alert.name}: {name}"
            tests.append(_test(alert, name, cases[alert.name][name], content["usual"], spelling, where))
    return {"rule_files": [rule_file], "evaluation_interval": "1m", "tests": tests}


def _fires(name: str) -> bool:
    word = name.split()[0]
    if word not in ("fires", "silent"):
        raise SourceError(f"a case is called `fires …` or `silent …`, and not {name!r}")
    return word == "fires"


def _test(
    alert: Alert,
    name: str,
    case: dict[str, Any],
    usual: list[dict[str, Any]],
    spelling: Spelling,
    where: str,
) -> dict[str, Any]:
    source.refuse_unknown(case, {"at", "usual", "series"}, where)
    entries = (usual if case.get("usual") else []) + case.get("series", [])
    series = [_series(entry, spelling, where) for entry in entries]
    count = f'count(ALERTS{{alertname="{alert.name}",alertstate="firing"}})'
    firing = [{"labels": "{}", "value": 1}] if _fires(name) else []
    return {
        "name": f"{alert.name} {name}",
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [{"expr": count, "eval_time": case["at"], "exp_samples": firing}],
    }


def _series(entry: dict[str, Any], spelling: Spelling, where: str) -> dict[str, str]:
    source.refuse_unknown(entry, {"metric", "part", "le", "labels", "values"}, where)
    metric = selection.find(entry["metric"], where)
    labels = {RUN: RUN_ID, **entry.get("labels", {})}
    if "le" in entry:
        labels["le"] = entry["le"]
    matchers = [f'{spelling.label(key)}="{value}"' for key, value in labels.items()]
    return {
        "series": spelling.selector(metric, matchers, entry.get("part", "")),
        "values": entry["values"],
    }
