"""What MFU is measured against where nobody said it, and the hardware's own word on it."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import rlotel
from rlotel.collectors.crosscheck import CrossCheck
from rlotel.collectors.fleet import Fleet
from rlotel.collectors.sampling import Sample
from rlotel.collectors.visible import GpuId
from rlotel.derived import Hardware
from rlotel.instruments import Attributes
from rlotel.semconv import metrics as m
from rlotel.testing import Telemetry, captured
from tests.collectors.conftest import Driver, until

BANDWIDTH = 3.35e12
"""Bytes/s of the H100 that the fake driver has."""

Open = Callable[..., Telemetry]


@pytest.fixture
def opened(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a session that reads GPUs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with ExitStack() as stack:

        def open_(environ: dict[str, str], **settings: Any) -> Telemetry:
            telemetry = stack.enter_context(captured(gpu=True, **settings))
            for name, value in environ.items():
                monkeypatch.setenv(name, value)  # frameworks set it late
            return telemetry

        yield open_


def iterate(telemetry: Telemetry, number: int = 1, flops: float = 1e15, seconds: float = 10) -> None:
    with rlotel.loop(iteration=number), rlotel.train() as train:
        train.add(flops=flops)
        telemetry.clock.advance(seconds)


def keep_iterating(telemetry: Telemetry, reached: Callable[[], object]) -> None:
    """Loop after loop, until something has come about."""

    def once() -> object:
        iterate(telemetry)
        return reached()

    until(once)


def looked(telemetry: Telemetry) -> Callable[[], object]:
    """Whether the collector has looked for what MFU is measured against: it reads after that."""
    return lambda: telemetry.points(m.HW_POWER)


def settle(telemetry: Telemetry) -> None:
    """A first loop, and time to look around."""
    iterate(telemetry)
    until(lambda: telemetry.session.recorder.hardware != Hardware())


def test_a_process_alone_with_its_gpu_needs_no_setting(opened: Open) -> None:
    telemetry = opened({"CUDA_VISIBLE_DEVICES": "3"})
    settle(telemetry)
    iterate(telemetry, 2)
    assert telemetry.value(m.TRAIN_MFU) == pytest.approx(1e15 / (10 * 989.4e12))
    assert telemetry.session.recorder.hardware == Hardware(1, 989.4e12, peak_bandwidth=BANDWIDTH)


def test_a_loop_that_begins_long_after_the_session_has_mfu_as_well(opened: Open) -> None:
    telemetry = opened({"CUDA_VISIBLE_DEVICES": "3"})
    telemetry.session.flush(0)  # settles the identity, as does a while without a loop
    settle(telemetry)
    assert telemetry.session.recorder.hardware == Hardware(1, 989.4e12, peak_bandwidth=BANDWIDTH)


def test_the_gpus_a_process_was_given_are_the_runs(opened: Open) -> None:
    telemetry = opened({"CUDA_VISIBLE_DEVICES": "3,4"})
    settle(telemetry)
    assert telemetry.session.recorder.hardware == Hardware(2, 989.4e12, peak_bandwidth=BANDWIDTH)


def test_what_the_user_says_wins(opened: Open) -> None:
    telemetry = opened({"CUDA_VISIBLE_DEVICES": "3"}, gpus=16, peak_flops=1e15)
    iterate(telemetry)
    assert telemetry.value(m.TRAIN_MFU) == pytest.approx(1e15 / (10 * 16 * 1e15))
    until(looked(telemetry))
    assert telemetry.session.recorder.hardware == Hardware(16, 1e15, peak_bandwidth=BANDWIDTH)
    assert telemetry.value(m.GPU_PEAK_FLOPS, **{"hw.name": "GPU 0"}) == 1e15


def test_the_peak_of_a_known_number_of_gpus_is_found(opened: Open) -> None:
    telemetry = opened({"RANK": "0", "WORLD_SIZE": "16"}, gpus=16)
    keep_iterating(telemetry, lambda: telemetry.points(m.TRAIN_MFU))
    assert telemetry.value(m.TRAIN_MFU) == pytest.approx(1e15 / (10 * 16 * 989.4e12))


@pytest.mark.parametrize(
    "environ",
    [
        {},  # one process that sees eight: does it use them all?
        {"RANK": "0", "WORLD_SIZE": "8", "CUDA_VISIBLE_DEVICES": "0"},
        {"LOCAL_RANK": "0", "CUDA_VISIBLE_DEVICES": "0"},
        {"SLURM_PROCID": "0", "CUDA_VISIBLE_DEVICES": "0"},
    ],
)
def test_a_number_of_gpus_that_is_not_known_for_sure_is_not_guessed(
    opened: Open, caplog: pytest.LogCaptureFixture, environ: dict[str, str]
) -> None:
    telemetry = opened(environ)
    settle(telemetry)
    until(lambda: "MFU is absent" in caplog.text)
    iterate(telemetry, 2)
    assert telemetry.value(m.TRAIN_MFU) is None
    assert telemetry.session.recorder.hardware == Hardware(None, 989.4e12, peak_bandwidth=BANDWIDTH)
    assert "how many GPUs the run has is unknown; set RLOTEL_GPUS" in caplog.text


def test_an_unknown_gpu_has_no_mfu_and_it_is_said_once(
    driver: Driver, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    driver.gpu(name="Foo 9000")
    telemetry = opened({"CUDA_VISIBLE_DEVICES": "0"})
    keep_iterating(telemetry, lambda: "MFU is absent" in caplog.text)
    for number in range(3):
        iterate(telemetry, number)
    assert not telemetry.points(m.TRAIN_MFU)
    assert not telemetry.points(m.LOOP_MFU)
    assert caplog.text.count("no dense bf16 peak is known for 'Foo 9000'; set RLOTEL_PEAK_FLOPS") == 1


def test_gpus_of_different_peaks_have_none_together(
    driver: Driver, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    driver.gpu(1, name="NVIDIA L4")
    telemetry = opened({"CUDA_VISIBLE_DEVICES": "0,1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    keep_iterating(telemetry, lambda: "MFU is absent" in caplog.text)
    assert "'NVIDIA H100 80GB HBM3', 'NVIDIA L4' have different peaks" in caplog.text
    assert not telemetry.points(m.TRAIN_MFU)


def test_who_counts_no_flops_hears_nothing_of_mfu(opened: Open, caplog: pytest.LogCaptureFixture) -> None:
    telemetry = opened({})
    with rlotel.loop(iteration=1), rlotel.train():
        telemetry.clock.advance(1)
    until(lambda: telemetry.session.recorder.hardware.peak_flops)
    until(looked(telemetry))
    assert "MFU" not in caplog.text


# The cross-check.


def train(
    telemetry: Telemetry, check: CrossCheck, activity: float, *, loops: int = 3, used: str = "GPU-0"
) -> None:
    """Loops of 20 s of training at an MFU of 40 %, read every second; another GPU does nothing."""

    def look(before: Sample | None, value: float) -> Sample:
        points: list[tuple[float, Attributes]] = [(value, {"hw.id": "GPU-0"}), (0.0, {"hw.id": "GPU-1"})]
        sample = Sample(telemetry.clock.monotonic(), 0.0, {m.GPU_OFU: points})
        check.look(before, sample, {used})
        return sample

    for number in range(loops):
        before = None
        with rlotel.loop(iteration=number):
            with rlotel.train() as phase:
                phase.add(flops=0.4 * 20 * 1e15)
                for _ in range(20):
                    telemetry.clock.advance(1)
                    before = look(before, activity)
            with rlotel.sync():
                telemetry.clock.advance(5)
                look(before, 0.0)
        telemetry.clock.advance(1)
        look(None, 0.0)


@pytest.fixture
def known() -> Iterator[Telemetry]:
    with captured(gpus=1, peak_flops=1e15) as telemetry:
        yield telemetry


@pytest.mark.parametrize("activity", [0.25, 0.55, 0.0])
def test_a_hardware_that_disagrees_is_a_finding_once(
    known: Telemetry, caplog: pytest.LogCaptureFixture, activity: float
) -> None:
    check = CrossCheck(known.session.recorder)
    train(known, check, activity, loops=6)
    assert known.value(m.FINDINGS, **{"rl.finding.name": "mfu_mismatch"}) == 1
    assert caplog.text.count("finding mfu_mismatch: rl.train.mfu is 40 %") == 1
    assert f"{100 * activity:.0f} %" in caplog.text


@pytest.mark.parametrize("activity", [0.31, 0.4, 0.49])
def test_a_hardware_that_agrees_is_none(known: Telemetry, activity: float) -> None:
    train(known, CrossCheck(known.session.recorder), activity, loops=6)
    assert known.value(m.FINDINGS) is None


def test_a_little_is_not_enough_to_judge_by(known: Telemetry) -> None:
    train(known, CrossCheck(known.session.recorder), 0.9, loops=2)
    assert known.value(m.FINDINGS) is None


def test_gpus_that_do_not_train_are_not_compared(known: Telemetry) -> None:
    train(known, CrossCheck(known.session.recorder), 0.9, loops=6, used="GPU-2")
    assert known.value(m.FINDINGS) is None


NODE = tuple(GpuId(f"GPU-{n}", n, "NVIDIA H100 80GB HBM3") for n in range(8))


@pytest.mark.parametrize(
    ("gpus", "environ", "roles", "expected"),
    [
        (1, {"CUDA_VISIBLE_DEVICES": "3"}, {}, {3}),
        (8, {}, {}, set(range(8))),
        (16, {"CUDA_VISIBLE_DEVICES": "3"}, {}, set(range(8))),  # of two nodes: those of this one
        (12, {}, {}, set()),  # which of these?
        (None, {"CUDA_VISIBLE_DEVICES": "3"}, {}, set()),
        (8, {}, {"GPU-0": "trainer", "GPU-1": "rollout", "GPU-2": "shared"}, {0, 2}),
        (8, {}, {"GPU-1": "rollout"}, set()),
    ],
)
def test_the_gpus_that_the_run_trains_on_are_known_or_none(
    gpus: int | None, environ: dict[str, str], roles: dict[str, str], expected: set[int]
) -> None:
    with captured(gpus=gpus) as telemetry:
        used = Fleet(telemetry.session.recorder, environ).used(NODE, roles)
    assert used == {f"GPU-{n}" for n in expected}
