"""Terraform for the dashboards and alert policies of Cloud Monitoring."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_PROJECT = """variable "project" {
  description = "The Google Cloud project of the dashboards and alert policies."
  type        = string
}
"""
_CHANNELS = """
variable "notification_channels" {
  description = "Who is told: names such as projects/P/notificationChannels/1."
  type        = list(string)
  default     = []
}
"""


def dashboards(names: Iterable[str], folder: str) -> str:
    """A file that makes the dashboards from their JSON files, which lie in `folder` beside it."""
    blocks = [
        f"""resource "google_monitoring_dashboard" "rlotel_{name}" {{
  project        = var.project
  dashboard_json = file("${{path.module}}/{folder}/{name}.json")
}}
"""
        for name in names
    ]
    return "\n".join(blocks)


def project() -> str:
    """The variable that says in which project."""
    return _PROJECT


def channels() -> str:
    """The variable that says who is told."""
    return _CHANNELS


def policy(content: dict[str, Any]) -> str:
    """The file of one alert policy."""
    condition = content["conditions"][0]
    promql = condition["conditionPrometheusQueryLanguage"]
    documentation = content["documentation"]
    name = promql["alertRule"]
    links = [
        f"""    links {{
      display_name = {_text(link["displayName"])}
      url          = {_text(link["url"])}
    }}
"""
        for link in documentation.get("links", ())
    ]
    labels = "".join(f"    {_text(key)} = {_text(value)}\n" for key, value in content["userLabels"].items())
    return f'''resource "google_monitoring_alert_policy" "{name}" {{
  project               = var.project
  display_name          = {_text(content["displayName"])}
  combiner              = {_text(content["combiner"])}
  enabled               = {json.dumps(content["enabled"])}
  severity              = {_text(content["severity"])}
  notification_channels = var.notification_channels

  user_labels = {{
{labels}  }}

  documentation {{
    subject   = {_text(documentation["subject"])}
    mime_type = {_text(documentation["mimeType"])}
    content   = {_text(documentation["content"])}
{"".join(links)}  }}

  conditions {{
    display_name = {_text(condition["displayName"])}
    condition_prometheus_query_language {{
      query                     = {_text(promql["query"])}
      duration                  = {_text(promql["duration"])}
      evaluation_interval       = {_text(promql["evaluationInterval"])}
      alert_rule                = {_text(promql["alertRule"])}
      rule_group                = {_text(promql["ruleGroup"])}
      disable_metric_validation = {json.dumps(promql["disableMetricValidation"])}
    }}
  }}

  alert_strategy {{
    auto_close = {_text(content["alertStrategy"]["autoClose"])}
  }}
}}
'''


def _text(value: str) -> str:
    """A string of HCL. Its escapes are JSON's; only a template's beginning must be doubled."""
    return json.dumps(value, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")
