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
    content   = "**Scoring ended with an error.** Rollouts that are paid for and have no reward teach nothing.\n\n# RLRewardFailing\n\n## Meaning\n\nScoring ended with an error: the verifier, reward model or sandbox raised.\n\n## Impact\n\nRollouts that are paid for get no reward and teach nothing. If the framework gives failed ones a reward of 0, it\nteaches the wrong thing.\n\n## Diagnosis\n\n1. *Overview*, **Scoring, share that failed**: some, or all?\n2. Traces: `rl.reward` spans with status error; `error.type`, and `rl.reward.sandbox` for where.\n3. *Where the time goes*, **Scoring**: errors after a constant time are timeouts.\n4. *Learning health*, **Reward**: does it drop when scoring fails? Then failures count as bad answers.\n\n## Mitigation\n\n- Restart or scale the sandbox or the reward model.\n- Retry in the reward function; mask samples without reward instead of scoring them 0.\n"
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
