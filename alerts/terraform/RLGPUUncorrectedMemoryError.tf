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
    content   = "**A GPU's memory gave a wrong value that could not be corrected.** The process that read it is dead or computes with a wrong number.\n\n# RLGPUUncorrectedMemoryError\n\n## Meaning\n\nA GPU's memory gave a value that error correction could not repair.\n\n## Impact\n\nThe process that read it is killed by the driver, or computes with a wrong number.\n\n## Diagnosis\n\n1. *GPUs*, **Hardware errors** (`uncorrected`) and **Rows remapped**: is the GPU out of spare rows?\n2. *Learning health*: loss and reward at that moment; a jump means a wrong number went in.\n\n## Mitigation\n\n- Drain the node and reset the GPU, so that the row is remapped; replace it if it happens again.\n- Restart from the checkpoint before the error, if the run went on with it.\n"
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
