resource "google_monitoring_alert_policy" "RLIterationFailed" {
  project               = var.project
  display_name          = "RL: RLIterationFailed"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rliterationfailed"
  }

  documentation {
    subject   = "RLIterationFailed: An iteration ended with an error, and no phase of it did."
    mime_type = "text/markdown"
    content   = "**An iteration ended with an error, and no phase of it did.** The work of the whole iteration.\n\n# RLIterationFailed\n"
  }

  conditions {
    display_name = "An iteration ended with an error, and no phase of it did."
    condition_prometheus_query_language {
      query                     = "(sum by (\"rl.run.id\") (increase({\"rl.phase.failures\",\"rl.phase.name\"=\"loop\"}[30m])) > 0) unless on (\"rl.run.id\") (sum by (\"rl.run.id\") (increase({\"rl.phase.failures\",\"rl.phase.name\"!=\"loop\"}[30m])) > 0)"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLIterationFailed"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
