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
    content   = "**The driver reported an error of a GPU (XID).** Many XIDs end the process; what was computed since may be wrong.\n\n# RLGPUXid\n\n## Meaning\n\nThe NVIDIA driver reported an error of a GPU. `rl.gpu.xid.errors` has the number in `rl.gpu.xid.code`.\n\n## Impact\n\nDepends on the number: 13, 31, 43 and 45 are most often the program's; 48, 63, 64, 74, 79, 94 and 95 the hardware's.\n\n## Diagnosis\n\n1. *GPUs*, **XIDs**: which number, on which GPU, once or again?\n2. 48, 94, 95: memory errors that could not be corrected; see RLGPUUncorrectedMemoryError. 74: NVLink. 79: GPU lost.\n3. 13, 31: an illegal access of a kernel; the same on several nodes means the program.\n\n## Mitigation\n\n- Hardware: cordon the node, restart elsewhere, have the GPU reset or replaced.\n- Program: the kernel that changed last.\n"
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
