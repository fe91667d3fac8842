resource "google_monitoring_alert_policy" "RLIdleShareHigh" {
  project               = var.project
  display_name          = "RL: RLIdleShareHigh"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlidlesharehigh"
  }

  documentation {
    subject   = "RLIdleShareHigh: For most of the loop no phase is open, or the trainer only waits for rollouts."
    mime_type = "text/markdown"
    content   = "**For most of the loop no phase is open, or the trainer only waits for rollouts.** The trainer's GPUs are paid for and do nothing.\n\n- `idle_share` is 0.5: half of the time nobody works; ours\n- `enough_loops` is 10: with fewer nothing is usual yet; ours\n\n# RLIdleShareHigh\n\n## Meaning\n\nFor most of the loop no phase is open in the process that runs it, or it only waits for rollouts.\n\n## Impact\n\nThe trainer's GPUs are paid for and do nothing. In asynchronous training that means too few rollout GPUs.\n\n## Diagnosis\n\n1. *Where the time goes*, **Time by phase** and **Sampling, the trainer waiting**: waiting, or nothing at all?\n2. Waiting: **Samples made** says how fast rollouts come; *GPUs* by role says who is busy.\n3. Nothing at all: a part of the loop has no phase. Put `rlotel.phase(\"…\")` around it.\n\n## Mitigation\n\n- Move GPUs from training to rollouts, or sample further ahead.\n- Normal for this set-up: raise `idle_share`.\n"
  }

  conditions {
    display_name = "For most of the loop no phase is open, or the trainer only waits for rollouts."
    condition_prometheus_query_language {
      query                     = "(avg by (\"rl.run.id\") (avg_over_time({\"rl.loop.idle.ratio\"}[30m])) > 0.5) and on (\"rl.run.id\") (sum by (\"rl.run.id\") (increase({\"rl.loop.duration_count\"}[6h])) >= 10)"
      duration                  = "600s"
      evaluation_interval       = "60s"
      alert_rule                = "RLIdleShareHigh"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
