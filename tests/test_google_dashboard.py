"""Google's published dashboard for RL on GKE finds every metric that it queries in what rlotel sends."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rlotel.capture import Capture
from rlotel.demo.run import Options, run
from rlotel.demo.settings import Settings
from rlotel.demo.show import Lines

# `rl-workload-performance.json` of GoogleCloudPlatform/monitoring-dashboard-samples, every `metric.type` in it:
# prometheus.googleapis.com/NAME/KIND.
ANYWHERE = {
    "rl.loop.duration/histogram",
    "rl.environment.reward.mean/gauge",
    "rl.train.loss/gauge",
    "rl.samples.rate/gauge",
    "rl.tokens.rate/gauge",
    "rl.sample.samples/counter",
    "rl.sample.episodes/counter",
    "rl.train.tokens/counter",
    "rl.train.steps/counter",
    "rl.train.duration/histogram",
    "rl.sync.duration/histogram",
    "rl.sample.duration/histogram",
    "rl.reward.duration/histogram",
}
WITH_GPUS = {"rl.train.mfu/gauge", "rl.samples.rate_per_gpu/gauge", "rl.tokens.rate_per_gpu/gauge"}
FILTERS = {"rl.algorithm", "rl.run.id", "rl.environment.name", "rl.model.name", "rl.system"}
"""The labels that it filters by, but for `rl.system.version`, which a loop of one's own has not, and
`rl.loop.iteration`, which would make a series of every iteration."""

SMALL = Settings(iterations=3, prompts=8, group_size=4, hidden=16, epochs=1, minibatches=2)

Sent = Callable[..., Capture]


@pytest.fixture
def sent(tmp_path: Path) -> Sent:
    """What a small run of the demo sends."""

    def send(gpus: int | None = None, peak_flops: float | None = None) -> Capture:
        options = Options(settings=SMALL, capture=tmp_path / "c.jsonl", gpus=gpus, peak_flops=peak_flops)
        outcome = run(options, Lines(to_stderr=True))
        assert outcome.receiver is not None
        return outcome.receiver.capture

    return send


def kinds(capture: Capture) -> set[str]:
    return {f"{point.name}/{point.kind}" for point in capture.all_points}


def test_what_needs_no_gpu_is_there_and_the_rest_is_absent_not_zero(sent: Sent) -> None:
    found = kinds(sent())
    assert found >= ANYWHERE
    assert found & WITH_GPUS == set()


def test_with_gpus_and_their_peak_all_of_it_is_there(sent: Sent) -> None:
    capture = sent(gpus=2, peak_flops=1e12)
    assert kinds(capture) >= ANYWHERE | WITH_GPUS
    (mfu,) = capture.latest("rl.train.mfu")
    assert mfu.value is not None
    assert 0 < mfu.value < 1
    for rate in ("rl.samples.rate", "rl.tokens.rate"):
        (whole,), (per_gpu,) = capture.latest(rate), capture.latest(f"{rate}_per_gpu")
        assert whole.value is not None
        assert per_gpu.value == pytest.approx(whole.value / 2)


def test_gpus_without_a_peak_have_rates_and_no_mfu(sent: Sent) -> None:
    assert kinds(sent(gpus=2)) & WITH_GPUS == WITH_GPUS - {"rl.train.mfu/gauge"}


def test_every_point_carries_the_labels_that_it_filters_by(sent: Sent) -> None:
    capture = sent()
    assert {name for point in capture.all_points for name in FILTERS - point.attributes.keys()} == set()
