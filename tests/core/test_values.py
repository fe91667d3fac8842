"""Counts, health values and what follows from a loop as a whole."""

import math
from typing import Any

import pytest

import rlotel
from rlotel.testing import Telemetry, captured


def test_a_value_that_turns_non_finite_is_gone_and_counted(telemetry: Telemetry) -> None:
    seen: list[float | None] = []
    for loss in (0.42, math.nan, None, None):
        with rlotel.loop(), rlotel.train() as train:
            train.loss(policy=loss)
        seen.append(telemetry.value("rl.train.loss", **{"rl.loss.type": "policy"}))
    assert seen == [0.42, None, None, None]
    found = {"rl.value.name": "rl.train.loss", "rl.value.kind": "nan", "rl.loss.type": "policy"}
    assert telemetry.value("rl.train.nonfinite", **found) == 1
    assert sum(point.value or 0 for point in telemetry.points("rl.train.nonfinite")) == 1


def test_infinity_is_told_from_nan_and_a_finite_value_comes_back(telemetry: Telemetry) -> None:
    for norm in (math.inf, -math.inf, 2.0):
        with rlotel.loop() as loop:
            loop.set(grad_norm=norm)
    assert telemetry.value("rl.train.nonfinite", **{"rl.value.name": "rl.grad_norm", "rl.value.kind": "inf"}) == 2
    assert telemetry.value("rl.grad_norm") == 2.0


def test_a_value_that_nobody_sets_any_more_is_gone_after_three_loops(telemetry: Telemetry) -> None:
    with rlotel.loop() as loop:
        loop.set(entropy=2.1)
    seen = []
    for _ in range(4):
        with rlotel.loop() as loop:
            loop.set(learning_rate=1e-5)
        seen.append(telemetry.value("rl.entropy"))
    assert seen == [2.1, 2.1, None, None]
    assert telemetry.value("rl.learning_rate") == 1e-5


def test_health_values_are_gauges_of_the_loop(telemetry: Telemetry) -> None:
    with rlotel.loop() as loop:
        loop.set(
            reward=0.5,
            episode_length=200,
            episode_turns=3,
            kl_divergence=0.02,
            entropy=1.2,
            grad_norm=0.4,
            learning_rate=1e-6,
            clip_ratio=0.0,
            zero_variance_ratio=0.25,
            staleness=1,
        )
        loop.set(kl_divergence=0.5, kl_reference="rollout")
        loop.loss(policy=0.1, value=0.2)
    values = {p.name: p.value for p in telemetry.points() if p.name not in {"rl.kl.divergence", "rl.train.loss"}}
    expected = {
        "rl.environment.reward.mean": 0.5,
        "rl.environment.episode.length.mean": 200,
        "rl.environment.episode.turns.mean": 3,
        "rl.entropy": 1.2,
        "rl.grad_norm": 0.4,
        "rl.learning_rate": 1e-6,
        "rl.train.clip.ratio": 0.0,
        "rl.reward.zero_variance.ratio": 0.25,
        "rl.sample.staleness": 1,
    }
    assert expected.items() <= values.items()
    assert {p.attributes["rl.kl.reference"]: p.value for p in telemetry.points("rl.kl.divergence")} == {
        "reference": 0.02,
        "rollout": 0.5,
    }
    assert {p.attributes["rl.loss.type"]: p.value for p in telemetry.points("rl.train.loss")} == {
        "policy": 0.1,
        "value": 0.2,
    }


def test_values_of_several_models_are_told_apart_by_role(telemetry: Telemetry) -> None:
    with rlotel.loop():
        for role, norm in (("actor", 0.4), ("critic", 7.0)):
            with rlotel.train(role=role) as train:
                train.add(steps=3)
                train.set(grad_norm=norm, entropy=norm)
    assert {p.attributes["rl.role"]: p.value for p in telemetry.points("rl.grad_norm")} == {
        "actor": 0.4,
        "critic": 7,
    }
    steps = {p.attributes.get("rl.role"): p.value for p in telemetry.points("rl.train.steps")}
    assert steps == {None: 0, "actor": 3, "critic": 3}
    assert telemetry.value("rl.entropy") == 7.0  # the model says that there is one


def test_evaluations_have_any_name_and_a_metric_of_their_own(telemetry: Telemetry) -> None:
    with rlotel.loop() as loop, rlotel.phase("evaluate") as evaluate:
        evaluate.score("val-core/openai/gsm8k/reward/mean@1", 0.61)
        loop.score("größe", 1)
    scores = {p.attributes["rl.evaluation.name"]: p.value for p in telemetry.points("rl.evaluation.score")}
    assert scores == {"val-core/openai/gsm8k/reward/mean@1": 0.61, "größe": 1}
    assert telemetry.points("rl.environment.reward.mean") == []


def test_shares_outside_of_zero_to_one_are_refused_and_leave_nothing_stale(telemetry: Telemetry) -> None:
    seen = []
    for ratio in (0.5, 1.0, 1.057, 0.2, -0.1):
        with rlotel.loop() as loop:
            loop.set(clip_ratio=ratio)
        seen.append(telemetry.value("rl.train.clip.ratio"))
    assert seen == [0.5, 1.0, None, 0.2, None]
    refusals = {p.attributes["rlotel.refusal.reason"]: p.value for p in telemetry.points("rlotel.values.refused")}
    assert (refusals["above_one"], refusals["negative"]) == (1, 1)


def test_counts_add_up_within_and_across_loops(telemetry: Telemetry) -> None:
    for _ in range(2):
        with rlotel.loop():
            with rlotel.sample() as sample:
                sample.add(samples=4, episodes=4)
                sample.add(samples=4, prompt_tokens=10, completion_tokens=20)
                sample.add(steps=50, step_seconds=5)
            with rlotel.train() as train:
                train.add(steps=2, tokens=60)
    assert telemetry.value("rl.sample.samples") == 16
    assert telemetry.value("rl.sample.episodes") == 8
    assert telemetry.value("rl.sample.steps") == 100
    assert telemetry.value("rl.sample.tokens", **{"rl.token.type": "prompt"}) == 20
    assert telemetry.value("rl.sample.tokens", **{"rl.token.type": "completion"}) == 40
    assert (telemetry.value("rl.train.steps"), telemetry.value("rl.train.tokens")) == (4, 120)
    (step,) = telemetry.points("rl.step.duration")
    assert (step.count, step.sum) == (2, 0.2)


def test_rates_are_those_of_each_loop() -> None:
    with captured(gpus=4) as seen:
        rates = []
        for _ in range(3):
            with rlotel.loop(), rlotel.sample() as sample:
                seen.clock.advance(10)
                sample.add(samples=20, tokens=1_000_000)
            rates.append(
                [seen.value(f"rl.{what}.rate{per}") for what in ("tokens", "samples") for per in ("", "_per_gpu")]
            )
    assert rates == [[100_000, 25_000, 2, 0.5]] * 3


def test_without_a_number_of_gpus_nothing_is_per_gpu(telemetry: Telemetry) -> None:
    with rlotel.loop(), rlotel.sample() as sample:
        telemetry.clock.advance(10)
        sample.add(samples=20)
    names = {point.name for point in telemetry.points()}
    assert "rl.samples.rate" in names
    assert not names & {"rl.samples.rate_per_gpu", "rl.tokens.rate", "rl.tokens.rate_per_gpu"}


def test_a_loop_of_no_time_has_no_rates(telemetry: Telemetry) -> None:
    with rlotel.loop(), rlotel.sample() as sample:
        sample.add(samples=20, tokens=1000)
    names = {point.name for point in telemetry.points()}
    assert not names & {"rl.samples.rate", "rl.tokens.rate", "rl.loop.idle.ratio"}
    assert telemetry.value("rl.loop.duration") == 0


def test_a_ratio_is_there_only_if_both_its_parts_are(telemetry: Telemetry) -> None:
    with rlotel.loop(), rlotel.sample() as sample:
        sample.add(samples=8, truncated=0)
    assert telemetry.value("rl.sample.truncated.ratio") == 0
    assert telemetry.points("rl.sample.aborted.ratio") == []
    with rlotel.loop(), rlotel.sample() as sample:
        sample.add(aborted=2)
    assert telemetry.points("rl.sample.aborted.ratio") == []
    with rlotel.loop(), rlotel.sample() as sample:
        sample.add(samples=4, aborted=1)
        sample.add(samples=4, aborted=1)
    assert telemetry.value("rl.sample.aborted.ratio") == 0.25


def utilization(telemetry: Telemetry) -> dict[str, float | None]:
    return {point.name: point.value for point in telemetry.points() if point.name.endswith(".mfu")}


def test_utilization_is_flops_over_time_and_peak() -> None:
    with captured(gpus=2, peak_flops=1e12) as telemetry:
        with rlotel.loop():
            with rlotel.sample() as sample:
                telemetry.clock.advance(4)
                sample.add(flops=0.8e12)
            with rlotel.train() as train:
                telemetry.clock.advance(5)
                train.add(flops=2e12)
                train.add(flops=2e12)
            telemetry.clock.advance(1)
        assert utilization(telemetry) == {"rl.sample.mfu": 0.1, "rl.train.mfu": 0.4, "rl.loop.mfu": 0.24}
        assert telemetry.value("rl.train.flops") == 4e12
        flops = {p.attributes["rl.phase.name"]: p.value for p in telemetry.points("rl.phase.flops")}
        assert flops == {"sample": 0.8e12, "train": 4e12}
        assert telemetry.value("rl.loop.flops") == 4.8e12
        assert telemetry.value("rl.loop.flops_capacity") == 2e13


@pytest.mark.parametrize("known", [{}, {"gpus": 8}, {"peak_flops": 1e15}])
def test_without_gpus_and_their_peak_there_is_no_utilization(known: dict[str, Any]) -> None:
    with captured(**known) as telemetry:
        with rlotel.loop(), rlotel.train() as train:
            telemetry.clock.advance(10)
            train.add(flops=1e15)
        assert utilization(telemetry) == {}
        assert telemetry.value("rl.train.flops") == 1e15


@pytest.mark.parametrize("kind", ["generate", "wait"])
def test_a_loops_utilization_needs_the_flops_of_all_its_phases(kind: str) -> None:
    with captured(gpus=1, peak_flops=1e12) as telemetry:
        with rlotel.loop():
            with rlotel.sample(kind=kind):  # type: ignore[call-overload]
                telemetry.clock.advance(5)
            with rlotel.train() as train:
                telemetry.clock.advance(5)
                train.add(flops=1e12)
        assert utilization(telemetry) == {"rl.train.mfu": 0.2}


def test_a_utilization_above_one_is_refused_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with captured(gpus=1, peak_flops=1e12) as telemetry:
        for _ in range(3):
            with rlotel.loop(), rlotel.train() as train:
                telemetry.clock.advance(1)
                train.add(flops=1.057e12)
        assert utilization(telemetry) == {}
        assert telemetry.value("rlotel.values.refused", **{"rlotel.refusal.reason": "above_one"}) == 6
    assert len([record for record in caplog.records if "rl.train.mfu" in record.message]) == 1


def test_no_time_is_no_utilization() -> None:
    with captured(gpus=1, peak_flops=1e12) as telemetry:
        with rlotel.loop(), rlotel.train() as train:
            train.add(tokens=1000, flops=1e9)
        assert utilization(telemetry) == {}


def test_the_bandwidth_share_of_sampling_needs_the_bytes_and_the_peak() -> None:
    with captured(gpus=4, peak_bandwidth=2e12) as telemetry:
        with rlotel.loop(), rlotel.sample() as sampling:
            telemetry.clock.advance(10)
            sampling.add(memory_bytes=2e13)
        assert telemetry.value("rl.sample.mbu") == 0.25
    with captured(gpus=4) as telemetry:
        with rlotel.loop(), rlotel.sample() as sampling:
            telemetry.clock.advance(10)
            sampling.add(memory_bytes=2e13)
        assert telemetry.points("rl.sample.mbu") == []


def test_an_iteration_that_broke_off_has_no_rate(telemetry: Telemetry) -> None:
    def sample() -> None:
        with rlotel.sample() as sampling:
            telemetry.clock.advance(1)
            sampling.add(samples=8, tokens=100)

    with rlotel.loop():
        sample()
        telemetry.clock.advance(9)
    with pytest.raises(RuntimeError, match="down"), rlotel.loop():
        sample()
        raise RuntimeError("down")
    assert (telemetry.value("rl.tokens.rate"), telemetry.value("rl.samples.rate")) == (10, 0.8)
