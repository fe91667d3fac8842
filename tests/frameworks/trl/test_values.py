"""What TRL logs goes to the gauges that mean the same; an evaluation's values never go to those of training."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.frameworks.running import Run
from tests.frameworks.trl.conftest import summaries, trained

GAUGES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "loss": ("rl.train.loss", {"rl.loss.type": "total"}),
    "grad_norm": ("rl.grad_norm", {}),
    "learning_rate": ("rl.learning_rate", {}),
    "entropy": ("rl.entropy", {}),
    "kl": ("rl.kl.divergence", {"rl.kl.reference": "reference"}),
    "reward": ("rl.environment.reward.mean", {}),
    "completions/mean_length": ("rl.environment.episode.length.mean", {}),
    "completions/clipped_ratio": ("rl.sample.truncated.ratio", {}),
    "clip_ratio/region_mean": ("rl.train.clip.ratio", {}),
    "frac_reward_zero_std": ("rl.reward.zero_variance.ratio", {}),
}


@pytest.mark.parametrize("key", GAUGES)
def test_a_gauge_has_the_value_that_was_logged_last(grpo: Run, key: str) -> None:
    metric, attributes = GAUGES[key]
    assert grpo.gauge(metric, **attributes)[-1] == trained(grpo)[-1][key]


@pytest.mark.parametrize("key", ["reward", "completions/mean_length", "entropy"])
def test_the_last_values_may_come_with_the_summary(rloo: Run, key: str) -> None:
    (summary,) = summaries(rloo)
    metric, attributes = GAUGES[key]
    assert summary[key] != trained(rloo)[-1][key]
    assert rloo.gauge(metric, **attributes)[-1] == summary[key]


def test_two_ranks_tell_a_value_once(ranks: Run) -> None:
    tellers = {
        point.resource["service.instance.id"] for point in ranks.capture.points("rl.environment.reward.mean")
    }
    assert len(tellers) == 1
    assert ranks.gauge("rl.environment.reward.mean")[-1] == trained(ranks)[-1]["reward"]


def test_an_evaluation_has_its_scores_and_nothing_else(grpo: Run) -> None:
    evaluations = [line for line in grpo.logged if "eval_loss" in line]
    scores = {
        str(point.attributes["rl.evaluation.name"]): point.value
        for point in grpo.capture.latest("rl.evaluation.score")
    }
    unscored = {"runtime", "samples_per_second", "steps_per_second", "num_tokens"}
    wanted = {
        key.removeprefix("eval_"): value for key, value in evaluations[-1].items() if key.startswith("eval_")
    }
    assert scores == {key: value for key, value in wanted.items() if key not in unscored}
    assert {"loss", "reward", "rewards/digits/mean"} <= scores.keys()


def test_an_evaluation_leaves_the_values_of_training_alone(grpo: Run) -> None:
    evaluated = {line["eval_reward"] for line in grpo.logged if "eval_reward" in line}
    assert not evaluated & set(grpo.gauge("rl.environment.reward.mean"))
    assert grpo.observations("rl.phase.duration", **{"rl.phase.name": "evaluate"}) == 2
    assert grpo.observations("rl.reward.duration") == 4


def test_a_reward_that_says_nothing_is_no_reward(troubles: Run) -> None:
    assert not trained(troubles)[-1]["reward"]
    assert 0 not in troubles.gauge("rl.environment.reward.mean")
    told = [line["reward"] for line in troubles.logged if line.get("reward") is not None]
    assert set(troubles.gauge("rl.environment.reward.mean")) <= set(told)
    assert troubles.total("rlotel.values.refused") == 0
    assert troubles.total("rl.train.nonfinite") == 0


def test_groups_that_teach_nothing_show_whatever_their_reward(tools: Run) -> None:
    assert tools.gauge("rl.environment.reward.mean")[-1] == 1
    assert tools.gauge("rl.reward.zero_variance.ratio")[-1] == 1


def test_the_mfu_of_asyncgrpo_is_in_percent_and_ours_is_not(asynchronous: Run) -> None:
    assert asynchronous.gauge("rl.train.mfu")[-1] == trained(asynchronous)[-1]["perf/mfu_fwd_bwd"] * 0.01


def test_asyncgrpo_tells_how_stale_its_rollouts_are_and_how_many_turns_they_have(asynchronous: Run) -> None:
    assert asynchronous.gauge("rl.sample.staleness")[-1] == trained(asynchronous)[-1]["sample/staleness_mean"]
    assert asynchronous.gauge("rl.environment.episode.turns.mean")[-1] == 2
    (kl,) = {point.attributes["rl.kl.reference"] for point in asynchronous.capture.points("rl.kl.divergence")}
    assert kl == "old_policy"


def test_a_divergence_that_is_none_from_a_reference_is_not_told_as_one(offline: Run) -> None:
    assert any("kl" in line for line in offline.logged)  # KTO's is one over whole sequences
    assert offline.gauge("rl.kl.divergence") == []
    assert offline.gauge("rl.train.loss")[-1] == trained(offline)[-1]["loss"]
