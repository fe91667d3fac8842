resource "google_monitoring_alert_policy" "RLGradNormSpike" {
  project               = var.project
  display_name          = "RL: RLGradNormSpike"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlgradnormspike"
  }

  documentation {
    subject   = "RLGradNormSpike: The gradient norm is far above what is usual for this run."
    mime_type = "text/markdown"
    content   = "**The gradient norm is far above what is usual for this run.** One such step can undo hours, if gradients are not clipped.\n\n- `grad_norm_of_usual` is 10: rlprobe: 10 times the median\n- `enough_steps` is 10: with fewer iterations there is no history to compare with; ours\n\n# RLGradNormSpike\n\n## Meaning\n\nThe gradient norm was many times its own median.\n\n## Impact\n\nOne such step can undo hours, if gradients are not clipped.\n\n## Diagnosis\n\n1. *Learning health*, **Gradient norm**, **Loss**, **Non-finite values** at that step.\n2. Is the norm the one before clipping? Then the step itself was bounded.\n3. **Episode length**, **Reward**: an outlier in the batch?\n\n## Mitigation\n\n- Clip gradients. If **Reward** falls afterwards, go back to the checkpoint before.\n"
  }

  conditions {
    display_name = "The gradient norm is far above what is usual for this run."
    condition_prometheus_query_language {
      query                     = "(max by (\"rl.run.id\") (max_over_time({\"rl.grad_norm\"}[30m])) > 10 * (avg by (\"rl.run.id\") (quantile_over_time(0.5, {\"rl.grad_norm\"}[6h])))) and on (\"rl.run.id\") (sum by (\"rl.run.id\") (increase({\"rl.loop.duration_count\"}[6h])) >= 10)"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLGradNormSpike"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
