resource "google_monitoring_alert_policy" "RLNonFinite" {
  project               = var.project
  display_name          = "RL: RLNonFinite"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlnonfinite"
  }

  documentation {
    subject   = "RLNonFinite: A loss, a gradient or a reward was not a number."
    mime_type = "text/markdown"
    content   = "**A loss, a gradient or a reward was not a number.** Steps taken with it may have spoilt the weights; training on makes nothing better.\n\n# RLNonFinite\n"
  }

  conditions {
    display_name = "A loss, a gradient or a reward was not a number."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\", \"rl.value.name\") (increase({\"rl.train.nonfinite\"}[30m])) > 0"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLNonFinite"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
