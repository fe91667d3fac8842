"""Alert policies of Cloud Monitoring: one condition in PromQL each, with the runbook in the notification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlotel.render import spelling
from rlotel.render.cloud_dashboard import OWNER
from rlotel.render.query import Scope

if TYPE_CHECKING:
    from rlotel.render.alert import Alert
    from rlotel.render.options import Options

NAME_LABEL = "rlotel-alert"
EVALUATION_S = 60
_CLOSE_AFTER = "86400s"
_SEVERITIES = {"critical": "CRITICAL", "warning": "WARNING"}


def render(alert: Alert, options: Options) -> dict[str, Any]:
    """The JSON of one policy, without notification channels."""
    scope = Scope(spelling.GOOGLE, options.windows.window_s, options.matchers)
    documentation: dict[str, Any] = {
        "content": text(alert, options),
        "mimeType": "text/markdown",
        "subject": f"{alert.name}: {alert.symptom}",
    }
    if options.runbooks is not None:
        link = {"displayName": f"Runbook {alert.name}", "url": f"{options.runbooks}/{alert.name}.md"}
        documentation["links"] = [link]
    return {
        "displayName": f"RL: {alert.name}",
        "combiner": "OR",
        "enabled": True,
        "severity": _SEVERITIES[alert.severity],
        "userLabels": {**OWNER, NAME_LABEL: alert.name.lower()},
        "documentation": documentation,
        "conditions": [
            {
                "displayName": alert.symptom,
                "conditionPrometheusQueryLanguage": {
                    "query": alert.promql(scope, options.windows),
                    "duration": f"{alert.lasts.value:.0f}s",
                    "evaluationInterval": f"{EVALUATION_S}s",
                    "alertRule": alert.name,
                    "ruleGroup": "rlotel",
                    # Without this a policy cannot be made before the first run has sent the metric.
                    "disableMetricValidation": True,
                },
            }
        ],
        "alertStrategy": {"autoClose": _CLOSE_AFTER},
    }


def text(alert: Alert, options: Options) -> str:
    """What the one who is called reads: symptom, loss, thresholds, and the runbook itself."""
    decided = [
        f"- `{threshold.name}` is {threshold.text(options.windows)}: {threshold.because}"
        for threshold in alert.thresholds
        if threshold.value and threshold.name != "is_so"
    ]
    parts = [f"**{alert.symptom}** {alert.losing}"]
    if decided:
        parts.append("\n".join(decided))
    return "\n\n".join([*parts, alert.runbook.strip()]) + "\n"
