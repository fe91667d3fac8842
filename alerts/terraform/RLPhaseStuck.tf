resource "google_monitoring_alert_policy" "RLPhaseStuck" {
  project               = var.project
  display_name          = "RL: RLPhaseStuck"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlphasestuck"
  }

  documentation {
    subject   = "RLPhaseStuck: One phase of an iteration has been open for far too long."
    mime_type = "text/markdown"
    content   = "**One phase of an iteration has been open for far too long.** All that waits for this phase stands still; the label says which it is.\n\n- `stuck_after` is 30 min: miles: over 1800 s\n\n# RLPhaseStuck\n"
  }

  conditions {
    display_name = "One phase of an iteration has been open for far too long."
    condition_prometheus_query_language {
      query                     = "max by (\"rl.run.id\", \"rl.phase.name\") ({\"rl.phase.age\"}) > 1800"
      duration                  = "300s"
      evaluation_interval       = "60s"
      alert_rule                = "RLPhaseStuck"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
