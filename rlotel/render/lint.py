"""Linting rendered files: those of Cloud Monitoring wholly, those of Grafana for their queries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rlotel.render import lint_dashboard, lint_policy, lint_query, spelling

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlotel.render.windows import Windows


def dashboards(texts: dict[str, str], times: Windows) -> dict[str, list[str]]:
    """What is wrong with each JSON file of a dashboard, by its path; Grafana's are told by their panels."""
    return _each(texts, times, _dashboard)


def policies(texts: dict[str, str], times: Windows) -> dict[str, list[str]]:
    """What is wrong with each JSON file of an alert policy, by its path."""
    return _each(texts, times, lint_policy.problems)


def _each(
    texts: dict[str, str], times: Windows, check: Callable[[dict[str, Any], Windows], list[str]]
) -> dict[str, list[str]]:
    found = {}
    for path, text in texts.items():
        if not path.endswith(".json"):
            continue
        try:
            content = json.loads(text)
        except ValueError as error:
            found[path] = [f"no JSON: {error}"]
        else:
            found[path] = check(content, times) if isinstance(content, dict) else ["no JSON object"]
    return found


def _dashboard(content: dict[str, Any], times: Windows) -> list[str]:
    if "panels" not in content:
        return lint_dashboard.problems(content, times)
    found = []
    for panel in content["panels"]:
        for target in panel.get("targets", ()):
            # Which spelling a file is in is not written in it: it is well if it is well in one.
            every = [lint_query.problems(target["expr"], one, times) for one in spelling.ALL.values()]
            found += [f"{panel['title']}: {problem}" for problem in min(every, key=len)]
    return found
