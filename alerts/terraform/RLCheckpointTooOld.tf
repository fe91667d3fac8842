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
    content   = "**The last durable checkpoint is too old.** A crash or preemption now would cost all the time since then, on every GPU.\n\n- `checkpoint_too_old` is 4 h: what one is ready to compute again; ours, set it to your interval\n\n# RLCheckpointTooOld\n\n## Meaning\n\n`rl.checkpoint.age` counts from the last durable checkpoint of any tier, or from the start while there is none.\n\n## Impact\n\nA crash or preemption now would cost all the time since then, on every GPU.\n\n## Diagnosis\n\n1. *Checkpoints*, **Age of the last checkpoint** by tier: is a faster tier fresh and only the durable one late?\n2. **Age of an open operation**: is a save under way, or stuck (RLCheckpointStuck)?\n3. **Operations**: does the framework save at all? Its interval may be in steps, and steps got slower.\n4. **Failed operations**: failing saves that nobody looked at.\n\n## Mitigation\n\n- Lower the interval, or fix what fails.\n- If you are ready to lose more, raise `checkpoint_too_old`.\n"
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
