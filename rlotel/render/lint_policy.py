"""What is wrong with an alert policy of Cloud Monitoring that its library would take without a word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlotel.render import lint_query, spelling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlotel.render.windows import Windows

MOST_CONDITIONS = 6
MOST_LINKS = 3
MOST_LABELS = 64
MOST_LOOKBACK_S = 24 * 3600
_CONTENT_CHARACTERS, _CONTENT_BYTES, _SUBJECT_BYTES = 8192, 10240, 255
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_SECTIONS = ("## Meaning", "## Impact", "## Diagnosis", "## Mitigation")


def problems(policy: dict[str, Any], times: Windows) -> list[str]:
    """Everything that is wrong."""
    found = [] if 0 < len(policy.get("displayName", "")) <= 512 else ["displayName: 1 to 512 characters"]
    if policy.get("combiner") not in ("AND", "OR", "AND_WITH_MATCHING_RESOURCE"):
        found.append("combiner: AND, OR or AND_WITH_MATCHING_RESOURCE")
    if policy.get("severity") not in ("CRITICAL", "ERROR", "WARNING"):
        found.append("severity: CRITICAL, ERROR or WARNING")
    conditions = policy.get("conditions", [])
    if not 1 <= len(conditions) <= MOST_CONDITIONS:
        found.append(f"conditions: 1 to {MOST_CONDITIONS}, and there are {len(conditions)}")
    for condition in conditions:
        found += _condition(condition, times)
    found += _documentation(policy.get("documentation", {}))
    found += _labels(policy.get("userLabels", {}))
    if _seconds(policy.get("alertStrategy", {}).get("autoClose", "")) < 1800:
        found.append("alertStrategy: autoClose: at least 1800s")
    return found


def _condition(condition: dict[str, Any], times: Windows) -> Iterator[str]:
    promql = condition.get("conditionPrometheusQueryLanguage")
    if promql is None:
        yield "a condition is not in PromQL"
        return
    yield from lint_query.problems(promql.get("query", ""), spelling.GOOGLE, times)
    interval = _seconds(promql.get("evaluationInterval", ""))
    if interval <= 0 or interval % 30:
        yield "evaluationInterval: a multiple of 30s"
    if _seconds(promql.get("duration", "0s")) < 0:
        yield "duration: 0s or more"
    if promql.get("disableMetricValidation") is not True:
        yield "disableMetricValidation: true, or the policy cannot be made before the first run"
    if times.baseline_s > MOST_LOOKBACK_S:
        yield f"it looks back {times.baseline_s} s, and a condition can look back {MOST_LOOKBACK_S} s"


def _documentation(documentation: dict[str, Any]) -> Iterator[str]:
    content = documentation.get("content", "")
    if missing := [section for section in _SECTIONS if section not in content]:
        yield f"documentation: no {', '.join(missing)} in the runbook"
    if len(content) > _CONTENT_CHARACTERS or len(content.encode()) > _CONTENT_BYTES:
        yield f"documentation: more than {_CONTENT_CHARACTERS} characters or {_CONTENT_BYTES} bytes"
    if "${" in content:
        yield "documentation: ${…} would be taken for a variable"
    if documentation.get("mimeType") != "text/markdown":
        yield "documentation: mimeType: text/markdown"
    if len(documentation.get("subject", "").encode()) > _SUBJECT_BYTES:
        yield f"documentation: subject: at most {_SUBJECT_BYTES} bytes"
    links = documentation.get("links", [])
    if len(links) > MOST_LINKS:
        yield f"documentation: at most {MOST_LINKS} links"
    if any(len(link["displayName"]) > 63 or len(link["url"]) > 2083 for link in links):
        yield "documentation: a link's name has at most 63 characters, its URL 2083"


def _labels(labels: dict[str, str]) -> Iterator[str]:
    if len(labels) > MOST_LABELS:
        yield f"userLabels: at most {MOST_LABELS}"
    for key, value in labels.items():
        if not _LABEL.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            yield f"userLabels: {key}: {value}: lower-case letters, digits, _ and -, at most 63"


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(-?\d+)s", text)
    return float(found[1]) if found else -1.0
