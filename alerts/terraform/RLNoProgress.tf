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
    content   = "**No iteration and no train step has finished for far longer than usual.** Every GPU of the run is held and trains nothing.\n\n- `no_progress_after` is 30 min: an iteration takes 4 to 9 minutes on Google's own picture of a run, six at 395 s\n- `usual_iterations_without_progress` is 6: miles calls an open phase a stall at 6 times its median\n\n# RLNoProgress\n\n## Meaning\n\n`rl.progress.age` counts the seconds since the last finished iteration or train step, and it has grown past the\nthreshold. It grows by itself, so it also fires for a hang between two iterations. A first iteration that compiles or\nloads data for long fires it too; afterwards the run's own median iteration time counts as well.\n\n## Impact\n\nEvery GPU of the run is held and trains nothing. Other runs may wait for them.\n\n## Diagnosis\n\n1. *Overview*, **Age of the open phase**: which phase is open, and for how long. None open: the process hangs between\n   iterations, most often in a data loader, an evaluation outside the loop or a collective operation.\n2. *Overview*, **State of the run**: still `running`? If the series has ended too, see RLTelemetrySilent.\n3. *GPUs*, **GPU utilization** highest and lowest: all at 100 % with low power is a collective that waits for a missing\n   rank (NCCL); all at 0 % is a wait on the CPU, network or disk. **Hardware errors**: an XID ends a rank silently.\n4. Trace of the last iteration (`rl.loop`, filter on `rl.run.id`): the last span that ended tells what came before.\n5. On the node: `py-spy dump --pid PID` of the process that runs the loop, then of the rank that differs from the rest.\n\n## Mitigation\n\n- Phase `sample` or `reward`: restart the engine or sandbox that does not answer; give its calls a timeout.\n- A rank is gone: restart the run from the last checkpoint (*Checkpoints*, **Step of the last checkpoint**).\n- It was only a slow first iteration: raise `no_progress_after`, or render with `--loop-time`.\n"
  }

  conditions {
    display_name = "No iteration and no train step has finished for far longer than usual."
    condition_prometheus_query_language {
      query                     = "(max by (\"rl.run.id\") ({\"rl.progress.age\"}) > 1800) unless on (\"rl.run.id\") (max by (\"rl.run.id\") ({\"rl.progress.age\"}) < 6 * (histogram_quantile(0.5, sum by (\"rl.run.id\", le) (rate({\"rl.loop.duration_bucket\"}[6h])))))"
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
