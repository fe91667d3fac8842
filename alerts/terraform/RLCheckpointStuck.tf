resource "google_monitoring_alert_policy" "RLCheckpointStuck" {
  project               = var.project
  display_name          = "RL: RLCheckpointStuck"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlcheckpointstuck"
  }

  documentation {
    subject   = "RLCheckpointStuck: An operation on a checkpoint does not end."
    mime_type = "text/markdown"
    content   = "**An operation on a checkpoint does not end.** Training may wait for it, and nothing new is safe.\n\n- `checkpoint_stuck_after` is 1 h: orbax#392: a save hung for hours, its median is minutes\n\n# RLCheckpointStuck\n\n## Meaning\n\nA save, restore or replication has been open for far longer than checkpoints take.\n\n## Impact\n\nTraining may wait for it, and nothing new is safe until it ends.\n\n## Diagnosis\n\n1. *Checkpoints*, **Age of an open operation**: which one, and does it still grow?\n2. **Operation time**: what is usual?\n3. Ranks: a save is collective; one rank that is gone or slow holds all. Compare `rl.worker.duration` by rank.\n4. Storage: throttling (HTTP 429), a hanging mount (`stat` on the path hangs too).\n\n## Mitigation\n\n- A hanging mount: restart the node's storage client, or move to another node.\n- Otherwise restart from the last good checkpoint, and save to another tier.\n"
  }

  conditions {
    display_name = "An operation on a checkpoint does not end."
    condition_prometheus_query_language {
      query                     = "max by (\"rl.run.id\", \"rl.checkpoint.operation\") ({\"rl.checkpoint.in_progress\"}) > 3600"
      duration                  = "300s"
      evaluation_interval       = "60s"
      alert_rule                = "RLCheckpointStuck"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
