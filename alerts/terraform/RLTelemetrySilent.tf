resource "google_monitoring_alert_policy" "RLTelemetrySilent" {
  project               = var.project
  display_name          = "RL: RLTelemetrySilent"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rltelemetrysilent"
  }

  documentation {
    subject   = "RLTelemetrySilent: A run that has not ended sends nothing any more."
    mime_type = "text/markdown"
    content   = "**A run that has not ended sends nothing any more.** Nobody can see whether it trains; most often it was killed, and its GPUs may still be held.\n\n# RLTelemetrySilent\n\n## Meaning\n\nThe last state that the run reported was `running`, and nothing has come since. A run that ends normally, fails or is\npreempted with notice reports that state last, and does not fire this.\n\n## Impact\n\nNobody can see whether it trains. Most often it was killed (out of memory on the host, node gone, `kill -9`).\n\n## Diagnosis\n\n1. Does the process or pod still exist? `kubectl get pods`, `kubectl describe pod`: OOMKilled, evicted, node lost?\n2. It runs: is the collector reachable? `rlotel doctor` in the pod says what does not work.\n3. The collector runs: did it refuse data? *Overview* of other runs: do they have gaps at the same time?\n\n## Mitigation\n\n- Gone: start it again from the last checkpoint.\n- Alive but unheard: repair the way to the collector; training need not be stopped for that.\n"
  }

  conditions {
    display_name = "A run that has not ended sends nothing any more."
    condition_prometheus_query_language {
      query                     = "(max by (\"rl.run.id\") (last_over_time({\"rl.run.status\",\"rl.run.state\"=\"running\"}[6h])) >= 1) unless on (\"rl.run.id\") (max by (\"rl.run.id\") ({\"rl.run.status\"}) >= 0) unless on (\"rl.run.id\") (max by (\"rl.run.id\") (last_over_time({\"rl.run.status\",\"rl.run.state\"=~\"completed|cancelled\"}[6h])) >= 1)"
      duration                  = "600s"
      evaluation_interval       = "60s"
      alert_rule                = "RLTelemetrySilent"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
