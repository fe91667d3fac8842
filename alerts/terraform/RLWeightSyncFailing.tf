resource "google_monitoring_alert_policy" "RLWeightSyncFailing" {
  project               = var.project
  display_name          = "RL: RLWeightSyncFailing"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlweightsyncfailing"
  }

  documentation {
    subject   = "RLWeightSyncFailing: New weights did not reach the rollout engines."
    mime_type = "text/markdown"
    content   = "**New weights did not reach the rollout engines.** Samples are made by an old policy, or not at all.\n\n# RLWeightSyncFailing\n\n## Meaning\n\nThe transfer of new weights to the rollout engines ended with an error.\n\n## Impact\n\nSamples are made by an old policy (see **Staleness of samples**), or not at all.\n\n## Diagnosis\n\n1. Traces: `rl.sync` spans with status error; `rl.sync.source` and `rl.sync.destination` say between whom.\n2. *Where the time goes*, **Weight sync** and **Weights sent**: slower or smaller than usual before the failure?\n3. *GPUs*, **Memory used**: a sync needs room for a second copy of some weights.\n\n## Mitigation\n\n- Restart the engines that do not answer; most frameworks send all weights to a new engine.\n- If it repeats, stop the run: training on stale samples gets worse with each step.\n"
  }

  conditions {
    display_name = "New weights did not reach the rollout engines."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\") (increase({\"rl.phase.failures\",\"rl.phase.name\"=\"sync\"}[30m])) > 0"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLWeightSyncFailing"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
