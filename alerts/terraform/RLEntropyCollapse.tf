resource "google_monitoring_alert_policy" "RLEntropyCollapse" {
  project               = var.project
  display_name          = "RL: RLEntropyCollapse"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlentropycollapse"
  }

  documentation {
    subject   = "RLEntropyCollapse: The policy's entropy has fallen to a small part of what it was."
    mime_type = "text/markdown"
    content   = "**The policy's entropy has fallen to a small part of what it was.** A policy that explores nothing finds nothing better; steps from here teach little.\n\n- `entropy_left` is 0.1: rldoctor: a tenth of the initial value\n- `enough_steps` is 10: with fewer iterations there is no history to compare with; ours\n\n# RLEntropyCollapse\n\n## Meaning\n\nEntropy is a small part of its highest value in the baseline window.\n\n## Impact\n\nA policy that explores nothing finds nothing better: reward is bought with entropy, and there is little left to pay.\n\n## Diagnosis\n\n1. *Learning health*, **Entropy** beside **Reward**: falling entropy with rising reward is normal for a while.\n2. **Groups with equal rewards**: rising means that groups have nothing to learn from.\n3. **Clipped updates** and **KL divergence**: are updates too large?\n\n## Mitigation\n\n- Raise the upper clip (clip-higher), an entropy bonus or the temperature; filter prompts that are always solved.\n- Go back to a checkpoint before the fall.\n"
  }

  conditions {
    display_name = "The policy's entropy has fallen to a small part of what it was."
    condition_prometheus_query_language {
      query                     = "(max by (\"rl.run.id\") ({\"rl.entropy\"}) < 0.1 * (max by (\"rl.run.id\") (max_over_time({\"rl.entropy\"}[6h])))) and on (\"rl.run.id\") (sum by (\"rl.run.id\") (increase({\"rl.loop.duration_count\"}[6h])) >= 10)"
      duration                  = "300s"
      evaluation_interval       = "60s"
      alert_rule                = "RLEntropyCollapse"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
