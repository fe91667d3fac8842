resource "google_monitoring_alert_policy" "RLNoProgress" {
  project               = var.project
  display_name          = "RL: RLNoProgress"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlnoprogress"
  }

  documentation {
    subject   = "RLNoProgress: No iteration and no train step has finished for far longer than usual."
    mime_type = "text/markdown"
    content   = "**No iteration and no train step has finished for far longer than usual.** Every GPU of the run is held and trains nothing.\n\n- `no_progress_after` is 45 min: an iteration takes 4 to 9 minutes on Google's own picture of a run, six at 395 s\n- `usual_iterations_without_progress` is 6: miles calls an open phase a stall at 6 times its median\n\n# RLNoProgress\n"
  }

  conditions {
    display_name = "No iteration and no train step has finished for far longer than usual."
    condition_prometheus_query_language {
      query                     = "(max by (\"rl.run.id\") ({\"rl.progress.age\"}) > 2700) unless on (\"rl.run.id\") (max by (\"rl.run.id\") ({\"rl.progress.age\"}) < 6 * (histogram_quantile(0.5, sum by (\"rl.run.id\", le) (rate({\"rl.loop.duration_bucket\"}[6h])))))"
      duration                  = "300s"
      evaluation_interval       = "60s"
      alert_rule                = "RLNoProgress"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
