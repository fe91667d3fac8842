resource "google_monitoring_alert_policy" "RLEntropyRise" {
  project               = var.project
  display_name          = "RL: RLEntropyRise"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlentropyrise"
  }

  documentation {
    subject   = "RLEntropyRise: The policy's entropy has risen far above what is usual for this run."
    mime_type = "text/markdown"
    content   = "**The policy's entropy has risen far above what is usual for this run.** Rollouts turn into noise; reward follows soon.\n\n- `entropy_of_usual` is 2: rllm#116: fine below 1, a failure when it had risen to 2\n- `enough_steps` is 10: with fewer iterations there is no history to compare with; ours\n\n# RLEntropyRise\n\n## Meaning\n\nMean entropy of the last window is well above the run's own median.\n\n## Impact\n\nRollouts turn into noise. Reward usually falls some iterations later.\n\n## Diagnosis\n\n1. *Learning health*, **Entropy** beside **Reward** and **Episode length**: long, rambling answers?\n2. **KL divergence**: does the policy leave its reference at the same time?\n3. **Learning rate**, **Clipped updates**: are updates too large? Is there an entropy bonus that wins?\n\n## Mitigation\n\n- Lower the entropy bonus, the learning rate or the temperature; go back to a checkpoint before the rise.\n"
  }

  conditions {
    display_name = "The policy's entropy has risen far above what is usual for this run."
    condition_prometheus_query_language {
      query                     = "(avg by (\"rl.run.id\") (avg_over_time({\"rl.entropy\"}[30m])) > 2 * (avg by (\"rl.run.id\") (quantile_over_time(0.5, {\"rl.entropy\"}[6h])))) and on (\"rl.run.id\") (sum by (\"rl.run.id\") (increase({\"rl.loop.duration_count\"}[6h])) >= 10)"
      duration                  = "300s"
      evaluation_interval       = "60s"
      alert_rule                = "RLEntropyRise"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
