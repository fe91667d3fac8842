resource "google_monitoring_alert_policy" "RLExportsRefused" {
  project               = var.project
  display_name          = "RL: RLExportsRefused"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlexportsrefused"
  }

  documentation {
    subject   = "RLExportsRefused: Some telemetry of the run did not arrive."
    mime_type = "text/markdown"
    content   = "**Some telemetry of the run did not arrive.** Panels have gaps, and the alerts of this list may stay silent.\n\n# RLExportsRefused\n\n## Meaning\n\nrlotel could not deliver some telemetry: the collector refused it or did not answer.\n\n## Impact\n\nPanels have gaps, and other alerts may stay silent.\n\n## Diagnosis\n\n1. `rlotel doctor` in the pod says what does not work.\n2. The label `rlotel.export.signal`: metrics, traces or both?\n3. The collector's log: quota (HTTP 429), permission (403), a point older than the one before it.\n\n## Mitigation\n\n- 429: a longer export interval (`OTEL_METRIC_EXPORT_INTERVAL`), fewer processes that export.\n- 403: `roles/telemetry.writer` and `roles/serviceusage.serviceUsageConsumer` for the service account.\n"
  }

  conditions {
    display_name = "Some telemetry of the run did not arrive."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\", \"rlotel.export.signal\") (increase({\"rlotel.export.failures\"}[30m])) > 0"
      duration                  = "300s"
      evaluation_interval       = "60s"
      alert_rule                = "RLExportsRefused"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
