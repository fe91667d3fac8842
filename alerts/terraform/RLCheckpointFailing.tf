resource "google_monitoring_alert_policy" "RLCheckpointFailing" {
  project               = var.project
  display_name          = "RL: RLCheckpointFailing"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlcheckpointfailing"
  }

  documentation {
    subject   = "RLCheckpointFailing: An operation on a checkpoint ended with an error."
    mime_type = "text/markdown"
    content   = "**An operation on a checkpoint ended with an error.** Every step since the last good checkpoint would be lost with the next crash.\n\n# RLCheckpointFailing\n"
  }

  conditions {
    display_name = "An operation on a checkpoint ended with an error."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\") (increase({\"rl.phase.failures\",\"rl.phase.name\"=\"checkpoint\"}[30m])) > 0"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLCheckpointFailing"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
