resource "google_monitoring_alert_policy" "RLCheckpointTooOld" {
  project               = var.project
  display_name          = "RL: RLCheckpointTooOld"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlcheckpointtooold"
  }

  documentation {
    subject   = "RLCheckpointTooOld: The last durable checkpoint is too old."
    mime_type = "text/markdown"
    content   = "**The last durable checkpoint is too old.** A crash or preemption now would cost all the time since then, on every GPU.\n\n- `checkpoint_too_old` is 4 h: what one is ready to compute again; ours, set it to your interval\n\n# RLCheckpointTooOld\n"
  }

  conditions {
    display_name = "The last durable checkpoint is too old."
    condition_prometheus_query_language {
      query                     = "min by (\"rl.run.id\") ({\"rl.checkpoint.age\"}) > 14400"
      duration                  = "300s"
      evaluation_interval       = "60s"
      alert_rule                = "RLCheckpointTooOld"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
