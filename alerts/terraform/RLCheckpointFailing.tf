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
    content   = "**An operation on a checkpoint ended with an error.** Every step since the last good checkpoint would be lost with the next crash.\n\n# RLCheckpointFailing\n\n## Meaning\n\nSaving or restoring a checkpoint ended with an error. An asynchronous save may fail long after it was begun.\n\n## Impact\n\nEvery step since the last good checkpoint would be lost with the next crash or preemption.\n\n## Diagnosis\n\n1. *Checkpoints*, **Step of the last checkpoint**: which step is safe, on which tier?\n2. Traces: `rl.checkpoint` spans with status error; `error.type`, `rl.checkpoint.operation`, `rl.checkpoint.tier`.\n3. Storage: quota, permissions of the service account, a full local disk, a bucket in another region.\n4. **Size**: a checkpoint much smaller than the one before is truncated.\n\n## Mitigation\n\n- Free or enlarge the storage; give the service account `roles/storage.objectUser` on the bucket.\n- Save once by hand, if the framework can, before anything else is tried.\n"
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
