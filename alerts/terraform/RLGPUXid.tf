resource "google_monitoring_alert_policy" "RLGPUXid" {
  project               = var.project
  display_name          = "RL: RLGPUXid"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlgpuxid"
  }

  documentation {
    subject   = "RLGPUXid: The driver reported an error of a GPU (XID)."
    mime_type = "text/markdown"
    content   = "**The driver reported an error of a GPU (XID).** Many XIDs end the process; what was computed since may be wrong.\n\n# RLGPUXid\n"
  }

  conditions {
    display_name = "The driver reported an error of a GPU (XID)."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\", \"hw.id\") (increase({\"hw.errors\",\"error.type\"=\"xid\"}[30m])) > 0"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLGPUXid"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
