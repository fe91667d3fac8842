resource "google_monitoring_alert_policy" "RLGPUThrottled" {
  project               = var.project
  display_name          = "RL: RLGPUThrottled"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlgputhrottled"
  }

  documentation {
    subject   = "RLGPUThrottled: A GPU is slowed down by heat."
    mime_type = "text/markdown"
    content   = "**A GPU is slowed down by heat.** The slowest GPU sets the pace of all.\n\n- `throttled_share` is 0.1: a tenth of the time; ours\n\n# RLGPUThrottled\n\n## Meaning\n\nThe driver slowed a GPU down because of heat or a hardware brake for a good part of the time.\n\n## Impact\n\nThe slowest GPU sets the pace of all in every synchronous phase.\n\n## Diagnosis\n\n1. *GPUs*, **Throttled time** by reason, **Temperature** and **Clock**: one GPU, one node, or all?\n2. *Where the time goes*, **A phase in each worker**: is this the straggler?\n3. One node: cooling or dust. All: the power cap or the room.\n\n## Mitigation\n\n- Move off that node; have its cooling looked at.\n- All of them: lower the power limit on purpose, steady clocks are faster than throttling ones.\n"
  }

  conditions {
    display_name = "A GPU is slowed down by heat."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\", \"hw.id\") (rate({\"rl.gpu.throttle.time\",\"rl.gpu.throttle.reason\"=~\"sw_thermal|hw_thermal|hw_slowdown\"}[30m])) > 0.1"
      duration                  = "300s"
      evaluation_interval       = "60s"
      alert_rule                = "RLGPUThrottled"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
