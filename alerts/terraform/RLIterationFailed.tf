resource "google_monitoring_alert_policy" "RLIterationFailed" {
  project               = var.project
  display_name          = "RL: RLIterationFailed"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rliterationfailed"
  }

  documentation {
    subject   = "RLIterationFailed: An iteration ended with an error, and no phase of it did."
    mime_type = "text/markdown"
    content   = "**An iteration ended with an error, and no phase of it did.** The work of the whole iteration.\n\n# RLIterationFailed\n\n## Meaning\n\nAn iteration ended with an error that was raised in none of its phases: in data handling between them, in a callback,\nor in the framework itself.\n\n## Impact\n\nThe work of the whole iteration is lost; most often the run ends with it.\n\n## Diagnosis\n\n1. Traces: `rl.loop` spans with status error; the exception is on the span.\n2. *Overview*, **State of the run**: did it end?\n3. The log of the process that runs the loop.\n\n## Mitigation\n\n- Fix what raised, and restart from the last checkpoint.\n- Put a `rlotel.phase(\"…\")` around that part, so that the next failure says where.\n"
  }

  conditions {
    display_name = "An iteration ended with an error, and no phase of it did."
    condition_prometheus_query_language {
      query                     = "(sum by (\"rl.run.id\") (increase({\"rl.phase.failures\",\"rl.phase.name\"=\"loop\"}[30m])) > 0) unless on (\"rl.run.id\") (sum by (\"rl.run.id\") (increase({\"rl.phase.failures\",\"rl.phase.name\"!=\"loop\"}[30m])) > 0)"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLIterationFailed"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
