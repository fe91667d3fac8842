"""Rule files of Prometheus, in one of its spellings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlotel.render import windows
from rlotel.render.query import RUN, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlotel.render.alert import Alert
    from rlotel.render.options import Options
    from rlotel.render.spelling import Spelling


def render(alerts: Iterable[Alert], spelling: Spelling, options: Options) -> dict[str, Any]:
    """The content of one rule file."""
    scope = Scope(spelling, options.windows.window_s, options.matchers)
    return {"groups": [{"name": "rlotel", "rules": [_rule(alert, scope, options) for alert in alerts]}]}


def _rule(alert: Alert, scope: Scope, options: Options) -> dict[str, Any]:
    # Templates of Prometheus reach dotted labels by index, and plain ones too.
    run = '{{ index $labels "' + scope.spelling.label(RUN).strip('"') + '" }}'
    annotations = {
        "summary": f"{alert.symptom} Run {run}.",
        "description": f"{alert.losing} The value is {{{{ $value | humanize }}}}.",
        "runbook": f"alerts/runbooks/{alert.name}.md",
    }
    if options.runbooks is not None:
        annotations["runbook_url"] = f"{options.runbooks}/{alert.name}.md"
    return {
        "alert": alert.name,
        "expr": alert.promql(scope, options.windows),
        "for": windows.text(alert.lasts.value),
        "labels": {"severity": alert.severity},
        "annotations": annotations,
    }
