resource "google_monitoring_alert_policy" "RLGPUThrottled" {
  project               = var.project
  display_name          = "RL: RLGPUThrottled"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlgputhrottled"
  }

  documentation {
    subject   = "RLGPUThrottled: A GPU is slowed down by heat."
    mime_type = "text/markdown"
    content   = "**A GPU is slowed down by heat.** The slowest GPU sets the pace of all.\n\n- `throttled_share` is 0.1: a tenth of the time; ours\n\n# RLGPUThrottled\n"
  }

  conditions {
    display_name = "A GPU is slowed down by heat."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\", \"hw.id\") (rate({\"rl.gpu.throttle.time\",\"rl.gpu.throttle.reason\"=~\"sw_thermal|hw_thermal|hw_slowdown\"}[30m])) > 0.1"
      duration                  = "300s"
      evaluation_interval       = "60s"
      alert_rule                = "RLGPUThrottled"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
