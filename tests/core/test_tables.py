"""The same thing has the same name, whichever framework logs it; with small cases that broke other tools."""

from collections.abc import Iterator
from typing import Any

import pytest

import rlotel
from rlotel.integrations.openrlhf import tables as openrlhf
from rlotel.integrations.skyrl import tables as skyrl
from rlotel.integrations.tables import Gauges, tell
from rlotel.integrations.trl import tables as trl
from rlotel.integrations.verl import tables as verl
from rlotel.testing import Telemetry, captured


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    with captured(frameworks=()) as telemetry:
        yield telemetry


def told(telemetry: Telemetry, logged: dict[str, Any], table: Gauges) -> None:
    tell(telemetry.session.recorder, logged, table)


@pytest.mark.parametrize(
    ("key", "table"),
    [
        ("critic/score/mean", verl.GAUGES),
        ("reward", trl.ONLINE),
        ("reward/avg_raw_reward", skyrl.GAUGES),
        ("rollout/reward_mean", openrlhf.GAUGES),
    ],
)
def test_a_mean_reward_is_one_gauge(telemetry: Telemetry, key: str, table: Gauges) -> None:
    told(telemetry, {key: 0.5}, table)
    assert telemetry.value("rl.environment.reward.mean") == 0.5
    assert len([point for point in telemetry.points() if point.kind == "gauge" and point.value == 0.5]) == 1


def test_utilization_is_a_share_whether_it_is_logged_as_one_or_in_percent(telemetry: Telemetry) -> None:
    told(telemetry, {"perf/mfu_fwd_bwd": 38.2}, trl.ASYNCHRONOUS)
    assert telemetry.value("rl.train.mfu") == pytest.approx(0.382)


def test_utilization_above_1_is_refused_and_counted(telemetry: Telemetry) -> None:
    told(telemetry, {"perf/mfu_fwd_bwd": 105.7}, trl.ASYNCHRONOUS)
    assert telemetry.points("rl.train.mfu") == []
    assert sum(point.value or 0 for point in telemetry.points("rlotel.values.refused")) == 1


def test_a_clip_ratio_of_0_is_0(telemetry: Telemetry) -> None:
    for _ in range(500):
        told(telemetry, {"clip_ratio/region_mean": 0.0}, trl.ONLINE)
    assert telemetry.value("rl.train.clip.ratio") == 0.0


def test_groups_without_a_signal_show_although_one_reward_differs_in_them(telemetry: Telemetry) -> None:
    logged = {
        "loss": 0.0,
        "grad_norm": 0.0,
        "rewards/if_rewrite_reward/std": 5.08,
        "reward": 3.0,
        "reward_std": 0.0,
        "frac_reward_zero_std": 1.0,
    }
    told(telemetry, logged, trl.ONLINE)
    assert telemetry.value("rl.reward.zero_variance.ratio") == 1.0
    assert telemetry.value("rl.grad_norm") == 0.0


def test_a_ratio_of_an_iteration_is_that_of_all_its_rollouts_and_no_mean_of_means(telemetry: Telemetry) -> None:
    with rlotel.loop():
        for samples, truncated in ((12, 3), (4, 3)):
            with rlotel.sample() as sample:
                sample.add(samples=samples, truncated=truncated)
    assert telemetry.value("rl.sample.truncated.ratio") == 0.375
