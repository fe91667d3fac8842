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
    content   = "**A GPU of the run does not answer any more.** The run hangs or dies with its next collective operation.\n\n# RLGPULost\n\n## Meaning\n\nThe driver says that a GPU is lost or its state failed (`hw.status` with `hw.state` = `failed`).\n\n## Impact\n\nThe run hangs in its next collective operation, or dies.\n\n## Diagnosis\n\n1. `hw.id` of the alert is the GPU's UUID; **Hardware errors** says on which node it is and what came before.\n2. On the node: `nvidia-smi` and `dmesg | grep -i xid`. XID 79: fallen off the bus.\n\n## Mitigation\n\n- Cordon the node, start the run elsewhere from the last checkpoint.\n- Reset or replace the GPU; on GKE let node auto-repair do it.\n"
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
