resource "google_monitoring_alert_policy" "RLGPUMemoryNearlyFull" {
  project               = var.project
  display_name          = "RL: RLGPUMemoryNearlyFull"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlgpumemorynearlyfull"
  }

  documentation {
    subject   = "RLGPUMemoryNearlyFull: A GPU's memory is nearly full."
    mime_type = "text/markdown"
    content   = "**A GPU's memory is nearly full.** The next long rollout may end the run with an out-of-memory error.\n\n- `memory_share` is 0.97: what is left is less than the fragments of one step; ours\n\n# RLGPUMemoryNearlyFull\n"
  }

  conditions {
    display_name = "A GPU's memory is nearly full."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\", \"hw.id\") ({\"hw.gpu.memory.usage\"}) / sum by (\"rl.run.id\", \"hw.id\") ({\"hw.gpu.memory.limit\"}) > 0.97"
      duration                  = "900s"
      evaluation_interval       = "60s"
      alert_rule                = "RLGPUMemoryNearlyFull"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
