"""Dashboards and alerts, rendered from short sources and the semantic model.

A source names metrics of the model and a statistic of a small closed set. Queries, units, titles, descriptions and
thresholds follow, for Cloud Monitoring, Grafana, Prometheus and Terraform alike.
"""

from rlotel.render.source import SourceError

__all__ = ["SourceError"]
