resource "google_monitoring_alert_policy" "RLSyncShareGrown" {
  project               = var.project
  display_name          = "RL: RLSyncShareGrown"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlsyncsharegrown"
  }

  documentation {
    subject   = "RLSyncShareGrown: Weight sync takes a much larger part of the loop than it used to."
    mime_type = "text/markdown"
    content   = "**Weight sync takes a much larger part of the loop than it used to.** Learner and rollout engines wait for each other instead of working.\n\n- `sync_share_grown` is 2: no published number; twice the run's own is ours\n- `sync_share` is 0.1: below a tenth of the loop there is little to win; ours\n- `enough_loops` is 10: with fewer nothing is usual yet; ours\n\n# RLSyncShareGrown\n\n## Meaning\n\nWeight sync takes a much larger share of the loop than it did before in this run.\n\n## Impact\n\nLearner and engines wait for each other instead of working.\n\n## Diagnosis\n\n1. *Where the time goes*, **Weight sync** and **Weights sent**: slower, or more bytes?\n2. *GPUs*, **NVLink** and **PCIe**: does the transfer go where it should?\n3. Did an engine restart on another node? Then it goes over a slower network.\n\n## Mitigation\n\n- Place learner and engines close together; use the framework's fast path (NCCL instead of files).\n- Sync less often, if the algorithm allows for the staleness.\n"
  }

  conditions {
    display_name = "Weight sync takes a much larger part of the loop than it used to."
    condition_prometheus_query_language {
      query                     = "(sum by (\"rl.run.id\") (increase({\"rl.sync.duration_sum\"}[30m])) / sum by (\"rl.run.id\") (increase({\"rl.loop.duration_sum\"}[30m])) > 2 * (sum by (\"rl.run.id\") (increase({\"rl.sync.duration_sum\"}[6h])) / sum by (\"rl.run.id\") (increase({\"rl.loop.duration_sum\"}[6h])))) and on (\"rl.run.id\") (sum by (\"rl.run.id\") (increase({\"rl.sync.duration_sum\"}[30m])) / sum by (\"rl.run.id\") (increase({\"rl.loop.duration_sum\"}[30m])) > 0.1) and on (\"rl.run.id\") (sum by (\"rl.run.id\") (increase({\"rl.loop.duration_count\"}[6h])) >= 10)"
      duration                  = "600s"
      evaluation_interval       = "60s"
      alert_rule                = "RLSyncShareGrown"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
