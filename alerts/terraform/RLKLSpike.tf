resource "google_monitoring_alert_policy" "RLKLSpike" {
  project               = var.project
  display_name          = "RL: RLKLSpike"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlklspike"
  }

  documentation {
    subject   = "RLKLSpike: KL divergence is far above what is usual for this run."
    mime_type = "text/markdown"
    content   = "**KL divergence is far above what is usual for this run.** The policy runs away from its reference; what it could do may be gone.\n\n- `kl_of_usual` is 8: rlprobe: 8 times its own baseline\n- `kl_high` is 0.5: rldoctor and rlprobe: high from 0.5\n- `enough_steps` is 10: with fewer iterations there is no history to compare with; ours\n\n# RLKLSpike\n\n## Meaning\n\nKL divergence is many times its own median, and high in absolute terms. `rl.kl.reference` says from what it is taken.\n\n## Impact\n\nThe policy runs away from its reference; what it could do may be gone.\n\n## Diagnosis\n\n1. *Learning health*, **KL divergence**: one step, or rising?\n2. `rollout`: the engines compute other probabilities than the trainer (precision, stale weights); one token can do it.\n3. `reference`: **Learning rate**, **Gradient norm**; a reward that can be gamed pulls far.\n\n## Mitigation\n\n- One step: watch. Rising: lower the learning rate or raise the KL coefficient, from a checkpoint before.\n- From `rollout`: check the weight sync, and the engines' precision.\n"
  }

  conditions {
    display_name = "KL divergence is far above what is usual for this run."
    condition_prometheus_query_language {
      query                     = "(max by (\"rl.run.id\", \"rl.kl.reference\") (max_over_time({\"rl.kl.divergence\"}[30m])) > 8 * (avg by (\"rl.run.id\", \"rl.kl.reference\") (quantile_over_time(0.5, {\"rl.kl.divergence\"}[6h])))) and on (\"rl.run.id\") (max by (\"rl.run.id\") (max_over_time({\"rl.kl.divergence\"}[30m])) > 0.5) and on (\"rl.run.id\") (sum by (\"rl.run.id\") (increase({\"rl.loop.duration_count\"}[6h])) >= 10)"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLKLSpike"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
