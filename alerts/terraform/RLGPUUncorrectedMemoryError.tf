resource "google_monitoring_alert_policy" "RLGPUUncorrectedMemoryError" {
  project               = var.project
  display_name          = "RL: RLGPUUncorrectedMemoryError"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlgpuuncorrectedmemoryerror"
  }

  documentation {
    subject   = "RLGPUUncorrectedMemoryError: A GPU's memory gave a wrong value that could not be corrected."
    mime_type = "text/markdown"
    content   = "**A GPU's memory gave a wrong value that could not be corrected.** The process that read it is dead or computes with a wrong number.\n\n# RLGPUUncorrectedMemoryError\n"
  }

  conditions {
    display_name = "A GPU's memory gave a wrong value that could not be corrected."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\", \"hw.id\") (increase({\"hw.errors\",\"error.type\"=\"uncorrected\"}[30m])) > 0"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLGPUUncorrectedMemoryError"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
