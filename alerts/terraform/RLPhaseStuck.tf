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
    content   = "**One phase of an iteration has been open for far too long.** All that waits for this phase stands still; the label says which it is.\n\n- `stuck_after` is 30 min: miles: over 1800 s\n\n# RLPhaseStuck\n\n## Meaning\n\n`rl.phase.age` is the age of the phase that has been open longest; its label `rl.phase.name` says which one. It has\ngrown past the threshold, while iterations may still be open around it.\n\n## Impact\n\nAll that waits for this phase stands still. In an asynchronous loop the others may go on for a while, on old weights.\n\n## Diagnosis\n\n1. The label `rl.phase.name` of the alert names the phase.\n2. *Where the time goes*, the panel of that phase: what is usual for it?\n3. `sample`: rollout engines full or gone, one endless rollout. `reward`: a verifier or sandbox without timeout.\n   `sync`: an engine that does not take part in the transfer. `train`: a missing rank. `checkpoint`: storage.\n4. The trace of the open iteration appears only when it ends; look at `rl.worker.duration` for a worker that is late.\n\n## Mitigation\n\n- Kill the call that hangs, if the framework survives that; else restart from the last checkpoint.\n- Give the outside call (verifier, sandbox, storage) a timeout well below the threshold.\n- If such a phase is normal here, raise `stuck_after`, or render with `--loop-time`.\n"
  }

  conditions {
    display_name = "One phase of an iteration has been open for far too long."
    condition_prometheus_query_language {
      query                     = "max by (\"rl.run.id\", \"rl.phase.name\") ({\"rl.phase.age\",\"rl.phase.name\"!=\"checkpoint\"}) > 1800"
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
