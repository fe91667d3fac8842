"""What a framework tells of the run's GPUs, and what the user set."""

import rlotel
from rlotel.derived import Hardware
from rlotel.semconv import metrics as m
from rlotel.testing import Telemetry, captured


def iteration(telemetry: Telemetry) -> None:
    with rlotel.loop():
        with rlotel.sample() as s:
            telemetry.clock.advance(1)
            s.add(samples=6, flops=120)
        with rlotel.train() as t:
            telemetry.clock.advance(2)
            t.add(flops=1200)


def test_a_framework_tells_what_the_user_did_not_set(telemetry: Telemetry) -> None:
    iteration(telemetry)
    assert telemetry.points(m.TRAIN_MFU) == telemetry.points(m.SAMPLES_RATE_PER_GPU) == []
    telemetry.session.recorder.equip(Hardware(gpus=10))
    telemetry.session.recorder.equip(Hardware(peak_flops=100))
    iteration(telemetry)
    assert telemetry.value(m.SAMPLES_RATE_PER_GPU) == 6 / 3 / 10
    assert telemetry.value(m.TRAIN_MFU) == 1200 / (2 * 10 * 100)
    assert telemetry.value(m.LOOP_MFU) == 1320 / (3 * 10 * 100)


def test_what_the_user_set_wins() -> None:
    with captured(gpus=4, peak_flops=1000) as telemetry:
        telemetry.session.recorder.equip(Hardware(gpus=10, peak_flops=100))
        iteration(telemetry)
        assert telemetry.value(m.TRAIN_MFU) == 1200 / (2 * 4 * 1000)


def test_a_phase_is_measured_by_the_gpus_that_take_part_in_it(telemetry: Telemetry) -> None:
    apart = {"train": 8, "sample": 2}
    telemetry.session.recorder.equip(Hardware(gpus=10, peak_flops=100, gpus_of=apart))
    iteration(telemetry)
    assert telemetry.value(m.TRAIN_MFU) == 1200 / (2 * 8 * 100)
    assert telemetry.value(m.SAMPLE_MFU) == 120 / (1 * 2 * 100)
    assert telemetry.value(m.LOOP_MFU) == 1320 / (3 * 10 * 100)
