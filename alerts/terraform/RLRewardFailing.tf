resource "google_monitoring_alert_policy" "RLRewardFailing" {
  project               = var.project
  display_name          = "RL: RLRewardFailing"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlrewardfailing"
  }

  documentation {
    subject   = "RLRewardFailing: Scoring ended with an error."
    mime_type = "text/markdown"
    content   = "**Scoring ended with an error.** Rollouts that are paid for and have no reward teach nothing.\n\n# RLRewardFailing\n"
  }

  conditions {
    display_name = "Scoring ended with an error."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\") (increase({\"rl.phase.failures\",\"rl.phase.name\"=\"reward\"}[30m])) > 0"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLRewardFailing"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
