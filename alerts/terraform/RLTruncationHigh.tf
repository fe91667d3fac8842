resource "google_monitoring_alert_policy" "RLTruncationHigh" {
  project               = var.project
  display_name          = "RL: RLTruncationHigh"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rltruncationhigh"
  }

  documentation {
    subject   = "RLTruncationHigh: Many rollouts are cut off at the length limit."
    mime_type = "text/markdown"
    content   = "**Many rollouts are cut off at the length limit.** Cut-off answers are scored as wrong ones; the policy learns from noise.\n\n- `truncated_share` is 0.25: miles: 0.25\n- `enough_steps` is 10: with fewer iterations there is no history to compare with; ours\n\n# RLTruncationHigh\n\n## Meaning\n\nA large share of rollouts is cut off at the length limit.\n\n## Impact\n\nCut-off answers are scored as wrong ones, whatever they were about to say; the policy learns from noise.\n\n## Diagnosis\n\n1. *Learning health*, **Truncated rollouts** beside **Episode length**: are answers growing towards the limit?\n2. **Reward** flat while length grows: the policy fills space.\n3. Read some rollouts: loops, repetition?\n\n## Mitigation\n\n- Raise the limit if memory allows; mask truncated rollouts in the loss; penalise length softly.\n"
  }

  conditions {
    display_name = "Many rollouts are cut off at the length limit."
    condition_prometheus_query_language {
      query                     = "(avg by (\"rl.run.id\") (avg_over_time({\"rl.sample.truncated.ratio\"}[30m])) > 0.25) and on (\"rl.run.id\") (sum by (\"rl.run.id\") (increase({\"rl.loop.duration_count\"}[6h])) >= 10)"
      duration                  = "300s"
      evaluation_interval       = "60s"
      alert_rule                = "RLTruncationHigh"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
