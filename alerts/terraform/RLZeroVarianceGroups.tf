resource "google_monitoring_alert_policy" "RLZeroVarianceGroups" {
  project               = var.project
  display_name          = "RL: RLZeroVarianceGroups"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlzerovariancegroups"
  }

  documentation {
    subject   = "RLZeroVarianceGroups: In most prompt groups all rollouts got the same reward."
    mime_type = "text/markdown"
    content   = "**In most prompt groups all rollouts got the same reward.** Such groups have no advantage to learn from; their sampling time is wasted.\n\n- `zero_variance_share` is 0.5: miles and rldoctor: from 0.5\n- `enough_steps` is 10: with fewer iterations there is no history to compare with; ours\n\n# RLZeroVarianceGroups\n\n## Meaning\n\nIn most prompt groups all rollouts got the same reward, so their advantages are zero.\n\n## Impact\n\nThe sampling time of such groups is wasted, and the effective batch is small.\n\n## Diagnosis\n\n1. *Learning health*, **Reward**: near 1, prompts are too easy; near 0, too hard, or scoring is broken.\n2. *Overview*, **Scoring, share that failed**: failures scored 0 look like this.\n3. **Entropy**: collapsed policies answer alike.\n\n## Mitigation\n\n- Filter prompts by difficulty (dynamic sampling); more rollouts a group; a higher temperature.\n"
  }

  conditions {
    display_name = "In most prompt groups all rollouts got the same reward."
    condition_prometheus_query_language {
      query                     = "(avg by (\"rl.run.id\") (avg_over_time({\"rl.reward.zero_variance.ratio\"}[30m])) > 0.5) and on (\"rl.run.id\") (sum by (\"rl.run.id\") (increase({\"rl.loop.duration_count\"}[6h])) >= 10)"
      duration                  = "300s"
      evaluation_interval       = "60s"
      alert_rule                = "RLZeroVarianceGroups"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
