resource "google_monitoring_alert_policy" "RLPhaseFailed" {
  project               = var.project
  display_name          = "RL: RLPhaseFailed"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlphasefailed"
  }

  documentation {
    subject   = "RLPhaseFailed: A phase of the loop ended with an error."
    mime_type = "text/markdown"
    content   = "**A phase of the loop ended with an error.** The work of that phase, and of the iteration if nobody caught the error.\n\n# RLPhaseFailed\n"
  }

  conditions {
    display_name = "A phase of the loop ended with an error."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\", \"rl.phase.name\") (increase({\"rl.phase.failures\",\"rl.phase.name\"!~\"loop|reward|sync|checkpoint\"}[30m])) > 0"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLPhaseFailed"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
