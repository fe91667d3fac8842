resource "google_monitoring_alert_policy" "RLRestarting" {
  project               = var.project
  display_name          = "RL: RLRestarting"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlrestarting"
  }

  documentation {
    subject   = "RLRestarting: The run was started again several times."
    mime_type = "text/markdown"
    content   = "**The run was started again several times.** Start-up, compilation and the steps since the last checkpoint, each time.\n\n- `restarts_in_baseline` is 3: one restart is a preemption, three are a pattern; ours\n\n# RLRestarting\n\n## Meaning\n\n`rl.restarts` grew several times within the baseline window; `rl.restart.reason` says why.\n\n## Impact\n\nEach restart pays for start-up, compilation and the steps since the last checkpoint.\n\n## Diagnosis\n\n1. *Checkpoints*, **Restarts** by reason: `preempted` is capacity, `failed` is the run.\n2. Failed: see RLRunFailed for the cause; the same error each time?\n3. Preempted: which node pool; is it Spot?\n\n## Mitigation\n\n- Failed: stop the retries until the cause is fixed.\n- Preempted: save more often, or move to capacity that stays.\n"
  }

  conditions {
    display_name = "The run was started again several times."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\") (increase({\"rl.restarts\"}[6h])) >= 3"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLRestarting"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
