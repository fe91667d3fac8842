resource "google_monitoring_alert_policy" "RLIterationsSlower" {
  project               = var.project
  display_name          = "RL: RLIterationsSlower"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rliterationsslower"
  }

  documentation {
    subject   = "RLIterationsSlower: Iterations take much longer than they used to in this run."
    mime_type = "text/markdown"
    content   = "**Iterations take much longer than they used to in this run.** Every GPU hour buys fewer steps.\n\n- `slower_than_usual` is 1.4: rlprobe calls 1.4 times the baseline throughput rot\n- `enough_loops` is 10: with fewer nothing is usual yet; ours\n\n# RLIterationsSlower\n\n## Meaning\n\nThe mean iteration time of the last window is well above the run's own median.\n\n## Impact\n\nEvery GPU hour buys fewer steps.\n\n## Diagnosis\n\n1. *Where the time goes*, **Time by phase**: which share grew?\n2. `sample`: **Episode length** grew? Longer answers take longer, and that may be wanted.\n3. `train`: **A phase in each worker** for a straggler, **Clock** and **Throttled time** for a slow GPU.\n4. `idle` or `data`: storage, network, the CPU of the head node.\n\n## Mitigation\n\n- Longer rollouts: cap the length, or rebalance GPUs between rollout and training.\n- A slow node: replace it and restart from the last checkpoint.\n"
  }

  conditions {
    display_name = "Iterations take much longer than they used to in this run."
    condition_prometheus_query_language {
      query                     = "(sum by (\"rl.run.id\") (rate({\"rl.loop.duration_sum\"}[30m])) / sum by (\"rl.run.id\") (rate({\"rl.loop.duration_count\"}[30m])) > 1.4 * (histogram_quantile(0.5, sum by (\"rl.run.id\", le) (rate({\"rl.loop.duration_bucket\"}[6h]))))) and on (\"rl.run.id\") (sum by (\"rl.run.id\") (increase({\"rl.loop.duration_count\"}[6h])) >= 10)"
      duration                  = "600s"
      evaluation_interval       = "60s"
      alert_rule                = "RLIterationsSlower"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
