"""Series: identity on every point, a bounded number of them, and counters that start at a true 0."""

from typing import Any

import pytest

import rlotel
from rlotel.semconv import metrics as m
from rlotel.testing import Telemetry, captured

IDENTITY: dict[str, Any] = {
    "run_id": "r1",
    "system": "verl",
    "system_version": "0.7",
    "algorithm": "GRPO",
    "model": "Qwen3-8B",
    "environment": "gsm8k",
    "environment_type": "simulated",
}
ATTRIBUTES = {
    "rl.run.id": "r1",
    "rl.system": "verl",
    "rl.system.version": "0.7",
    "rl.algorithm": "GRPO",
    "rl.model.name": "Qwen3-8B",
    "rl.environment.name": "gsm8k",
    "rl.environment.type": "simulated",
}


def full_loop(number: int) -> None:
    with rlotel.loop(iteration=number) as loop:
        loop.set(reward=number, grad_norm=float("nan"))
        loop.loss(policy=0.1)
        for bracket in (rlotel.sample(), rlotel.reward(), rlotel.train(), rlotel.sync(), rlotel.phase("data")):
            with bracket as handle:
                handle.score("math", number)
        with rlotel.checkpoint("save", tier="ram", step=number, bytes=5):
            pass


def test_every_point_and_the_resource_say_whose_they_are() -> None:
    with captured(**IDENTITY) as telemetry:
        full_loop(1)
        points = telemetry.points()
        assert len({point.name for point in points}) > 20
        for point in points:
            assert ATTRIBUTES.items() <= point.attributes.items(), point.name
            assert ATTRIBUTES.items() <= point.resource.items()
        for span in telemetry.spans():
            assert ATTRIBUTES.items() <= span.resource.items()


def test_what_is_unknown_is_absent_but_for_run_and_system() -> None:
    with captured() as telemetry:
        full_loop(1)
        for point in telemetry.points("rl.loop.duration"):
            assert point.attributes == {"rl.run.id": "test", "rl.system": "custom"}


def test_an_identity_that_comes_before_the_first_loop_is_used_and_the_users_wins() -> None:
    with captured(model="mine") as telemetry:
        with rlotel.checkpoint("restore", tier="ram"):
            telemetry.clock.advance(1)
        recorder = telemetry.session.recorder
        recorder.identify(system="verl", algorithm="PPO", model="theirs", environment="", system_version=None)
        recorder.identify(algorithm="GRPO")
        with rlotel.loop():
            pass
        recorder.identify(algorithm="DAPO", environment="late")
        with rlotel.loop():
            pass
        for name in ("rl.loop.duration", "rl.checkpoint.duration"):
            (point,) = telemetry.points(name)
            whose = {key: value for key, value in point.attributes.items() if "checkpoint" not in key}
            assert whose == {
                "rl.run.id": "test",
                "rl.system": "verl",
                "rl.algorithm": "GRPO",
                "rl.model.name": "mine",
            }


def test_counters_start_at_zero_so_that_a_first_event_is_an_increase() -> None:
    with captured() as telemetry:
        zeros = telemetry.points()
        expected = {
            (metric.name, tuple(sorted(attributes.items()))) for metric in m.ALL for attributes in metric.zeros
        }
        identity = {"rl.run.id", "rl.system"}
        found = {
            (p.name, tuple(sorted((k, v) for k, v in p.attributes.items() if k not in identity)))
            for p in zeros
            if p.value == 0
        }
        assert expected <= found
        full_loop(1)
        born = {
            (p.name, p.attributes.get("rl.phase.name")): p.value
            for p in telemetry.points()
            if p.name == "rl.phase.failures"
        }
        assert set(born.values()) == {0}


def test_gauges_start_absent() -> None:
    with captured() as telemetry:
        gauges = {point.name for point in telemetry.points() if point.kind == "gauge"}
        assert gauges == {"rl.progress.age"}


def test_ten_thousand_iterations_have_as_many_series_as_ten(telemetry: Telemetry) -> None:
    for number in range(10):
        full_loop(number)
    before = {point.series for point in telemetry.points()}
    for number in range(10, 10_000):
        with rlotel.loop(iteration=number) as loop, rlotel.train() as train:
            loop.set(reward=number)
            train.add(steps=1)
        telemetry._spans.clear()
    full_loop(10_000)
    after = {point.series for point in telemetry.points()}
    assert after == before
    assert not any("iteration" in str(series) for series in after)


def test_too_many_phase_names_become_one(telemetry: Telemetry) -> None:
    with rlotel.loop():
        for number in range(500):
            with rlotel.phase(f"phase {number}"):
                telemetry.clock.advance(1)
    names = {str(point.attributes["rl.phase.name"]) for point in telemetry.points("rl.phase.duration")}
    assert len(names) == 65
    assert telemetry.value("rl.phase.duration", **{"rl.phase.name": "_OTHER"}) == 436
    assert telemetry.value("rlotel.values.refused", **{"rlotel.refusal.reason": "cardinality"}) == 436


def test_too_many_attribute_values_are_refused_and_counted(telemetry: Telemetry) -> None:
    with rlotel.loop() as loop:
        for number in range(250):
            loop.score(f"task {number}", number)
            loop.score(f"task {number}", number)
    assert len(telemetry.points("rl.evaluation.score")) == 200
    assert telemetry.value("rlotel.values.refused", **{"rlotel.refusal.reason": "cardinality"}) == 100


def test_attributes_that_the_model_does_not_give_a_metric_stay_out_of_it(telemetry: Telemetry) -> None:
    telemetry.session.recorder.set(m.ENTROPY, 1.0, {"user": "someone"})
    telemetry.session.recorder.set(m.ENTROPY, 2.0)
    (point,) = telemetry.points("rl.entropy")
    assert (point.value, point.attributes) == (2.0, {"rl.run.id": "test", "rl.system": "custom"})


def test_histogram_values_that_nobody_exports_are_limited(telemetry: Telemetry) -> None:
    for _ in range(20_100):
        telemetry.session.recorder.instruments.record(m.LOOP_DURATION, 1.0)
    (point,) = telemetry.points("rl.loop.duration")
    assert point.count == 20_000
    assert telemetry.value("rlotel.values.refused", **{"rlotel.refusal.reason": "queue_full"}) == 100


@pytest.mark.parametrize("seconds", [0.2, 150.0, 395.0, 3600.0])
def test_no_usual_duration_lands_beyond_the_last_bucket(telemetry: Telemetry, seconds: float) -> None:
    with rlotel.loop():
        telemetry.clock.advance(seconds)
    (point,) = telemetry.points("rl.loop.duration")
    assert point.bucket_counts[-1] == 0
