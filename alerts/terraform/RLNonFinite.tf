resource "google_monitoring_alert_policy" "RLNonFinite" {
  project               = var.project
  display_name          = "RL: RLNonFinite"
  combiner              = "OR"
  enabled               = true
  severity              = "CRITICAL"
  notification_channels = var.notification_channels

  user_labels = {
    "managed-by" = "rlotel"
    "rlotel-alert" = "rlnonfinite"
  }

  documentation {
    subject   = "RLNonFinite: A loss, a gradient or a reward was not a number."
    mime_type = "text/markdown"
    content   = "**A loss, a gradient or a reward was not a number.** Steps taken with it may have spoilt the weights; training on makes nothing better.\n\n# RLNonFinite\n\n## Meaning\n\nA value that the framework reported was NaN or infinite; `rl.value.name` says which metric it was for. It was counted\nin `rl.train.nonfinite`, and the metric itself has no value until a finite one comes.\n\n## Impact\n\nIf the optimizer stepped with it, the weights are spoilt and every later step is wasted. Some frameworks report NaN for\nan empty batch, and nothing is wrong with the weights.\n\n## Diagnosis\n\n1. *Learning health*, **Non-finite values**: which names, once or again and again?\n2. **Gradient norm** and **Loss** just before: a spike means divergence; nothing unusual means an empty or masked batch.\n3. **Aborted rollouts** and **Truncated rollouts** at 100 %: the batch was empty, and the means over it are NaN.\n4. **Reward** afterwards: does it go on as before, or collapse?\n\n## Mitigation\n\n- The weights are spoilt (loss stays NaN): stop, go back to the checkpoint before the first count.\n- Lower the learning rate or clip gradients; in reduced precision check the loss scale and the log-probabilities.\n- Empty batches: let the framework skip them, and find out why all rollouts were aborted.\n"
  }

  conditions {
    display_name = "A loss, a gradient or a reward was not a number."
    condition_prometheus_query_language {
      query                     = "sum by (\"rl.run.id\", \"rl.value.name\") (increase({\"rl.train.nonfinite\"}[30m])) > 0"
      duration                  = "0s"
      evaluation_interval       = "60s"
      alert_rule                = "RLNonFinite"
      rule_group                = "rlotel"
      disable_metric_validation = true
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }
}
