resource "google_monitoring_alert_policy" "RLMFUDropped" {
  project               = var.project
  display_name          = "RL: RLMFUDropped"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlmfudropped"
  }

  documentation {
    subject   = "RLMFUDropped: MFU is much lower than it used to be in this run."
    mime_type = "text/markdown"
    content   = "**MFU is much lower than it used to be in this run.** The same GPUs do less useful arithmetic.\n\n- `mfu_of_usual` is 0.7: honest values go from 0.1 % to 40 %, so only a run's own history says what is low\n- `enough_loops` is 10: with fewer nothing is usual yet; ours\n\n# RLMFUDropped\n\n## Meaning\n\nMFU of the whole loop is well below the run's own median.\n\n## Impact\n\nThe same GPUs do less useful arithmetic.\n\n## Diagnosis\n\n1. *GPUs*, **MFU** by phase: training, sampling, or more idle time between them?\n2. **Clock**, **Throttled time**, **GPU utilization** lowest: a slow or sick GPU?\n3. *Learning health*, **Episode length**: shorter sequences and smaller batches lower MFU honestly.\n\n## Mitigation\n\n- As in RLIterationsSlower.\n- Lengths changed for good: wait, the baseline follows.\n"
  }

  conditions {
    display_name = "MFU is much lower than it used to be in this run."
    condition_prometheus_query_language {
      query                     = "(avg by (\"rl.run.id\") (avg_over_time({\"rl.loop.mfu\"}[30m])) < 0.7 * (avg by (\"rl.run.id\") (quantile_over_time(0.5, {\"rl.loop.mfu\"}[6h])))) and on (\"rl.run.id\") (sum by (\"rl.run.id\") (increase({\"rl.loop.duration_count\"}[6h])) >= 10)"
      duration                  = "600s"
      evaluation_interval       = "60s"
      alert_rule                = "RLMFUDropped"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
