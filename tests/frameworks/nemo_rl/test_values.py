"""Values: what of NeMo RL's logs is a value of training, what one of a validation, and what is none."""

import math
import sys
from types import ModuleType
from typing import Any

import pytest

from .conftest import Nemo, Rows, batch


def points(nemo: Nemo, *names: str) -> dict[tuple[str, ...], float | None]:
    """Values by metric and what tells its series apart."""
    told = ("rl.loss.type", "rl.kl.reference", "rl.evaluation.name", "rl.role")
    return {
        (name, *(str(point.attributes[key]) for key in told if key in point.attributes)): point.value
        for name in names
        for point in nemo.telemetry.points(name)
    }


REFUSED = "rlotel.values.refused"
HEALTH = ("rl.train.loss", "rl.kl.divergence", "rl.entropy", "rl.grad_norm", "rl.learning_rate")
RESULTS = {"loss": 0.5, "kl_penalty": 0.02, "approx_entropy": 1.5, "grad_norm": 0.7, "lr": 1e-6}


def test_results_become_gauges(nemo: Nemo) -> None:
    nemo.logger.log_metrics({**RESULTS, "gen_kl_error": 0.001, "critic/loss": 0.3, "critic/lr": 1e-5}, 1, "train")
    assert points(nemo, *HEALTH) == {
        ("rl.train.loss", "total"): 0.5,
        ("rl.train.loss", "value"): 0.3,
        ("rl.kl.divergence", "reference"): 0.02,
        ("rl.kl.divergence", "rollout"): 0.001,
        ("rl.entropy",): 1.5,
        ("rl.grad_norm", "actor"): 0.7,
        ("rl.learning_rate", "actor"): 1e-6,
        ("rl.learning_rate", "critic"): 1e-5,
    }


def test_values_that_nemo_rl_adds_up_over_updates_are_means_again(nemo: Nemo) -> None:
    """Entropy and KL are means over tokens in each optimizer step, and sums of those in the log."""

    def body() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"), timer.time("policy_training"):
            nemo.policy.train(batch(10, 10), None)
        nemo.logger.log_metrics(
            {"approx_entropy": 6.0, "kl_penalty": 0.04, "grad_norm": 0.7, "loss": 0.8}, 1, "train"
        )

    nemo.play(train=lambda **_: {"loss": Rows([0.2, 0.2, 0.2, 0.2])})
    nemo.train(body)
    assert points(nemo, *HEALTH) == {
        ("rl.entropy",): 1.5,
        ("rl.kl.divergence", "reference"): 0.01,
        ("rl.grad_norm", "actor"): 0.7,  # that of the last step
        ("rl.train.loss", "total"): 0.8,  # as it is logged
    }


def test_validations_never_reach_gauges_of_training(nemo: Nemo) -> None:
    nemo.logger.log_metrics({"loss": 0.5, "reward": 0.25}, 3, "train")
    nemo.logger.log_metrics({"accuracy": 0.6, "avg_length": 812.0, "reward": 0.9, "loss": 9.0}, 3, "validation")
    nemo.logger.log_metrics({"loss": 0.4, "accuracy": 0.7}, 3, prefix="validation-helpsteer")
    assert points(nemo, "rl.train.loss", "rl.environment.reward.mean", "rl.evaluation.score") == {
        ("rl.train.loss", "total"): 0.5,
        ("rl.environment.reward.mean",): 0.25,
        ("rl.evaluation.score", "accuracy"): 0.6,
        ("rl.evaluation.score", "avg_length"): 812.0,
        ("rl.evaluation.score", "reward"): 0.9,
        ("rl.evaluation.score", "loss"): 9.0,
        ("rl.evaluation.score", "helpsteer/loss"): 0.4,
        ("rl.evaluation.score", "helpsteer/accuracy"): 0.7,
    }


def test_what_is_no_number_is_no_value(nemo: Nemo) -> None:
    """Tables, histograms, lists and flags are logged beside numbers; infinities where there was nothing."""
    nemo.logger.log_metrics(
        {
            "accuracy": 0.5,
            "min_length": math.inf,
            "max_length": -math.inf,
            "agent/full_result": object(),
            "histogram/gen_tokens_length": [1, 2, 3],
            "passed": True,
            "mode": "greedy",
            "acc@1": 0.25,
        },
        1,
        "validation",
    )
    assert points(nemo, "rl.evaluation.score") == {
        ("rl.evaluation.score", "accuracy"): 0.5,
        ("rl.evaluation.score", "acc@1"): 0.25,
    }
    assert (
        nemo.telemetry.value(
            "rl.train.nonfinite", **{"rl.value.name": "rl.evaluation.score", "rl.value.kind": "inf"}
        )
        == 0
    )


def test_sentinels_of_ratios_are_not_reported_and_a_reward_of_minus_one_is(nemo: Nemo) -> None:
    nemo.logger.log_metrics({"probs_ratio_min": -1.0, "probs_ratio_max": -1.0, "reward": -1.0}, 1, "train")
    values = {(point.name, point.value) for point in nemo.telemetry.points() if point.value == -1}
    assert values == {("rl.environment.reward.mean", -1.0)}


def test_a_divergence_that_is_not_computed_is_unknown(nemo: Nemo) -> None:
    """Without a KL penalty NeMo RL logs 0."""
    nemo.logger.log_metrics({"kl_penalty": 0, "reward": 0}, 1, "train")
    assert points(nemo, "rl.kl.divergence", "rl.environment.reward.mean") == {("rl.environment.reward.mean",): 0}


def test_a_loss_that_turns_nan_is_counted_and_gone(nemo: Nemo) -> None:
    for loss in (0.42, math.nan):
        nemo.logger.log_metrics({"loss": loss}, 1, "train")
    assert nemo.telemetry.points("rl.train.loss") == []
    found = {"rl.value.name": "rl.train.loss", "rl.value.kind": "nan", "rl.loss.type": "total"}
    assert nemo.telemetry.value("rl.train.nonfinite", **found) == 1


def test_text_among_numbers_leaves_the_others(nemo: Nemo) -> None:
    for number in range(3):
        nemo.logger.log_metrics({"kl_penalty": [0.1, 0.2], "lr": "cosine", "loss": 0.3}, number, "train")
    assert points(nemo, *HEALTH) == {("rl.train.loss", "total"): 0.3}
    refused = {point.attributes["rlotel.refusal.reason"]: point.value for point in nemo.telemetry.points(REFUSED)}
    assert {reason: value for reason, value in refused.items() if value} == {"text": 3, "not_a_number": 3}


def test_metrics_are_not_touched_and_a_backend_gets_them_all(nemo: Nemo) -> None:
    class Backend:
        def __init__(self) -> None:
            self.got: list[Any] = []

        def log_metrics(self, *arguments: Any) -> None:
            self.got.append(arguments)

    backend, metrics = Backend(), {"loss": [0.1, 0.2], "table": object()}
    nemo.logger.loggers.append(backend)
    nemo.logger.log_metrics(metrics, 1, "train", step_finished=True)
    assert backend.got == [(metrics, 1, "train", None, True)]
    assert backend.got[0][0] is metrics


def test_an_mfu_of_nemo_rl_is_taken_where_ours_cannot_be_computed(nemo: Nemo) -> None:
    nemo.logger.log_metrics({"train_fp_utilization": 0.41, "samples_per_sec": 7.0}, 1, "performance")
    assert points(nemo, "rl.train.mfu") == {("rl.train.mfu",): 0.41}
    nemo.logger.log_metrics({"train_fp_utilization": 0.39}, 2, "train")
    assert points(nemo, "rl.train.mfu") == {("rl.train.mfu",): 0.39}


@pytest.fixture
def native(nemo: Nemo, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """NeMo RL's own telemetry, on."""
    module = ModuleType("nemo_rl.telemetry.setup")
    module.__dict__["get_telemetry_handle"] = object
    monkeypatch.setitem(sys.modules, "nemo_rl.telemetry.setup", module)
    return module


def test_what_nemo_rl_reports_under_the_same_names_is_left_to_it(nemo: Nemo, native: ModuleType) -> None:
    nemo.logger.log_metrics({**RESULTS, "gen_kl_error": 0.001, "reward": 0.25}, 1, "train")
    assert points(nemo, *HEALTH, "rl.environment.reward.mean") == {
        ("rl.train.loss", "total"): 0.5,
        ("rl.kl.divergence", "rollout"): 0.001,
        ("rl.environment.reward.mean",): 0.25,
    }
    native.__dict__["get_telemetry_handle"] = lambda: None  # installed, and off
    nemo.logger.log_metrics(RESULTS, 2, "train")
    assert points(nemo, "rl.entropy") == {("rl.entropy",): 1.5}
