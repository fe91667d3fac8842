resource "google_monitoring_alert_policy" "RLGPUMemoryNearlyFull" {
  project               = var.project
  display_name          = "RL: RLGPUMemoryNearlyFull"
  combiner              = "OR"
  enabled               = true
  severity              = "WARNING"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlgpumemorynearlyfull"
  }

  documentation {
    subject   = "RLGPUMemoryNearlyFull: A GPU's memory is nearly full."
    mime_type = "text/markdown"
    content   = "**A GPU's memory is nearly full.** The next long rollout may end the run with an out-of-memory error.\n\n- `memory_share` is 0.97: what is left is less than the fragments of one step; ours\n\n# RLGPUMemoryNearlyFull\n\n## Meaning\n\nA GPU uses nearly all of its memory. Inference engines reserve most of it on purpose; then this is normal.\n\n## Impact\n\nThe next long rollout or larger batch may end the run with an out-of-memory error.\n\n## Diagnosis\n\n1. *GPUs*, **Memory used** by role: rollout GPUs are full by design (key-value cache), trainer GPUs are not.\n2. Does it grow from iteration to iteration? Then something is kept that should be freed.\n3. *Learning health*, **Episode length**: longer rollouts need more.\n\n## Mitigation\n\n- Engines: lower `gpu_memory_utilization`. Trainer: smaller micro-batches, activation checkpointing.\n- Normal here: raise `memory_share`.\n"
  }

  conditions {
    display_name = "A GPU's memory is nearly full."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\", \"hw.id\") ({\"hw.gpu.memory.usage\"}) / sum by (\"rl.run.id\", \"hw.id\") ({\"hw.gpu.memory.limit\"}) > 0.97"
      duration                  = "900s"
      evaluation_interval       = "60s"
      alert_rule                = "RLGPUMemoryNearlyFull"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
