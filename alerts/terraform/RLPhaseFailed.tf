resource "google_monitoring_alert_policy" "RLPhaseFailed" {
  project               = var.project
  display_name          = "RL: RLPhaseFailed"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlphasefailed"
  }

  documentation {
    subject   = "RLPhaseFailed: A phase of the loop ended with an error."
    mime_type = "text/markdown"
    content   = "**A phase of the loop ended with an error.** The work of that phase, and of the iteration if nobody caught the error.\n\n# RLPhaseFailed\n\n## Meaning\n\nA phase of an iteration ended with an error: `sample`, `train` or one that is none of the five. The label\n`rl.phase.name` says which; `rl.phase.failures` counts from a true zero, so the first failure fires.\n\n## Impact\n\nThe work of that phase is lost, and of the iteration if nobody caught the error.\n\n## Diagnosis\n\n1. Traces: spans with status error and this `rl.run.id`; `error.type` and the exception are on the span.\n2. *Overview*, **Failed phases**: once, or in every iteration?\n3. *GPUs*, **Memory used** for out-of-memory errors; **Hardware errors** for XIDs at the same time.\n4. The log of the process at the time of the span.\n\n## Mitigation\n\n- Once, and the run goes on: note it. Again and again: stop the run, it pays for failing.\n- Out of memory: fewer or shorter rollouts in one batch, or more memory for the key-value cache's neighbour.\n"
  }

  conditions {
    display_name = "A phase of the loop ended with an error."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\", \"rl.phase.name\") (increase({\"rl.phase.failures\",\"rl.phase.name\"!~\"loop|reward|sync|checkpoint\"}[30m])) > 0"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLPhaseFailed"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
