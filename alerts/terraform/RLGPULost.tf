resource "google_monitoring_alert_policy" "RLGPULost" {
  project               = var.project
  display_name          = "RL: RLGPULost"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlgpulost"
  }

  documentation {
    subject   = "RLGPULost: A GPU of the run does not answer any more."
    mime_type = "text/markdown"
    content   = "**A GPU of the run does not answer any more.** The run hangs or dies with its next collective operation.\n\n# RLGPULost\n"
  }

  conditions {
    display_name = "A GPU of the run does not answer any more."
    condition_prometheus_query_language {
      query                     = "max by (\"rl.run.id\", \"hw.id\") ({\"hw.status\",\"hw.type\"=\"gpu\",\"hw.state\"=\"failed\"}) >= 1"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLGPULost"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
