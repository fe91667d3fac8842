resource "google_monitoring_alert_policy" "RLRunFailed" {
  project               = var.project
  display_name          = "RL: RLRunFailed"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlrunfailed"
  }

  documentation {
    subject   = "RLRunFailed: The run ended with an error."
    mime_type = "text/markdown"
    content   = "**The run ended with an error.** The GPUs are idle, or go to somebody else, until it is started again.\n\n# RLRunFailed\n\n## Meaning\n\nThe run said at its end that it failed: `rl.run.status` has `rl.run.state` = `failed`.\n\n## Impact\n\nThe GPUs are idle, or go to somebody else, until it is started again.\n\n## Diagnosis\n\n1. The log of the launching process: the exception is its last.\n2. *Overview*, **Failed phases** and **Non-finite values** just before the end.\n3. *GPUs*, **Hardware errors** and **GPU memory** just before the end.\n4. *Checkpoints*, **Step of the last checkpoint**: from where can it go on?\n\n## Mitigation\n\n- Fix the cause and start it again with the same `rl.run.id`, so that its history goes on.\n"
  }

  conditions {
    display_name = "The run ended with an error."
    condition_prometheus_query_language {
      query                     = "max by (\"rl.run.id\") ({\"rl.run.status\",\"rl.run.state\"=\"failed\"}) >= 1"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLRunFailed"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
