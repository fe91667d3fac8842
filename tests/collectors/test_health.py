"""The state of a GPU: degraded, failing, lost and back; the driver that goes away and comes back."""

import logging

import pynvml
import pytest

from rlotel.collectors.nvml import CallFailed
from rlotel.semconv import metrics as m
from tests.collectors.conftest import Driver, Readings


def state(readings: Readings, gpu: int = 0) -> str | None:
    """The present state, if all four are told and only one of them is it."""
    points = [(value, labels) for value, labels in readings.sample.points.get(m.HW_STATUS, [])]
    states = {str(labels["hw.state"]): value for value, labels in points if labels["hw.name"] == f"GPU {gpu}"}
    if not states:
        return None
    assert states.keys() == {"ok", "degraded", "predicted_failure", "failed"}
    assert sorted(states.values()) == [0, 0, 0, 1]
    return max(states, key=lambda name: states[name])


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, "ok"),
        ({"clock_reasons": 0x4}, "ok"),  # the power limit, normal at full load
        ({"clock_reasons": 0x8}, "degraded"),
        ({"clock_reasons": 0x20}, "degraded"),
        ({"clock_reasons": 0x40}, "degraded"),
        ({"clock_reasons": 0x80}, "degraded"),
        ({"remap_pending": 1}, "degraded"),
        ({"field230": 1}, "degraded"),
        ({"remap_failed": 1}, "predicted_failure"),
        ({"remap_failed": 1, "clock_reasons": 0x40}, "predicted_failure"),
        ({"error": 15}, "failed"),
        ({"error": 16}, "failed"),
        ({"error": 28}, "failed"),
        ({"error": 999}, None),
    ],
)
def test_a_gpus_state_follows_from_what_it_says(
    driver: Driver, keys: dict[str, int], expected: str | None
) -> None:
    readings = Readings()
    readings.sampler.open()
    driver.gpu(3, **keys)
    readings.read()
    assert state(readings, 3) == expected
    assert state(readings, 4) == "ok"


def test_a_lost_gpu_is_failed_and_the_other_seven_go_on(
    driver: Driver, readings: Readings, caplog: pytest.LogCaptureFixture
) -> None:
    readings.read(times=3)
    driver.gpu(3, error=15)
    readings.read(times=5)
    assert {name for name, _ in readings.all(3)} == {"hw.status", "hw.errors"}
    assert state(readings, 3) == "failed"
    assert readings.value(m.HW_ERRORS, 3, error__type="xid") == 0
    assert sorted(readings.values(m.HW_POWER)) == [f"GPU {n}" for n in (0, 1, 2, 4, 5, 6, 7)]
    assert readings.failures == {"NVMLError_GpuIsLost": 1}
    assert caplog.text.count("GPU 3 (") == 1
    asked = driver.called("nvmlDeviceGetUtilizationRates", 3)
    readings.read(times=5)
    assert driver.called("nvmlDeviceGetUtilizationRates", 3) == asked


def test_a_lost_gpu_that_was_reset_is_read_again(driver: Driver, readings: Readings) -> None:
    readings.read()
    driver.gpu(3, error=15)
    readings.read()
    driver.gpu(3, error=0, energy_mj=1_000)
    readings.read(seconds=61)
    assert state(readings, 3) == "ok"
    assert readings.value(m.HW_POWER, 3) == 650
    assert readings.value(m.HW_ENERGY, 3) == 1


def test_a_gpu_that_is_lost_in_the_middle_of_a_reading_gives_no_half_of_it(
    driver: Driver, readings: Readings
) -> None:
    readings.read()
    driver.gpu(3, error=15, error_after=driver.called("nvmlDeviceGetPowerUsage", 3) + 40)
    for _ in range(4):
        readings.read()
        whole = "hw.energy" in {name for name, _ in readings.all(3)}
        assert whole == (state(readings, 3) == "ok")
        assert whole == (readings.value(m.HW_GPU_UTILIZATION, 3) is not None)
    assert state(readings, 3) == "failed"


def test_a_gpu_that_cannot_be_opened_leaves_the_others_alone(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.gpu(3, handle_error=15)
    readings = Readings()
    readings.sampler.open()
    readings.read(times=2)
    assert sorted(readings.values(m.HW_POWER)) == [f"GPU {n}" for n in (0, 1, 2, 4, 5, 6, 7)]
    assert readings.failures == {"NVMLError_GpuIsLost": 1}
    assert "1 of 8 GPUs cannot be read" in caplog.text
    driver.gpu(3, handle_error=0)
    readings.read(seconds=61)
    assert len(readings.values(m.HW_POWER)) == 8


@pytest.mark.parametrize("code", [1, 9, 18])
def test_a_driver_that_goes_away_ends_the_reading_and_can_be_opened_again(driver: Driver, code: int) -> None:
    readings = Readings()
    readings.sampler.open()
    readings.read()
    driver.returns("nvmlDeviceGetUtilizationRates", code)
    with pytest.raises(CallFailed):
        readings.read()
    readings.sampler.close()
    driver.returns("nvmlInitWithFlags", code)
    with pytest.raises(CallFailed):
        readings.sampler.open()
    driver.returns("nvmlInitWithFlags", 0)
    driver.returns("nvmlDeviceGetUtilizationRates", 0)
    driver.gpu(energy_mj=1_000)
    readings.sampler.open()
    readings.read()
    assert readings.value(m.HW_ENERGY) == 1


def test_devices_that_a_container_has_lost_end_the_reading(driver: Driver, readings: Readings) -> None:
    readings.read()
    driver.gpu(error=999)
    assert readings.read().points.keys() == {m.HW_ERRORS}  # what was heard before
    readings.read()
    with pytest.raises(CallFailed, match="none of them gives any value"):
        readings.read()


def test_a_gpu_that_is_not_there_after_a_restart_of_the_driver_is_failed(
    driver: Driver, readings: Readings
) -> None:
    readings.read()
    readings.sampler.close()
    driver.set(count=7)
    readings.sampler.open()
    readings.read()
    assert state(readings, 7) == "failed"
    assert state(readings, 6) == "ok"


def test_another_users_shutdown_in_this_process_is_survived(driver: Driver, readings: Readings) -> None:
    readings.read()
    pynvml.nvmlShutdown()
    with pytest.raises(CallFailed):
        readings.read()
    readings.sampler.close()
    readings.sampler.open()
    assert len(readings.read().points[m.HW_POWER]) == 8


def test_a_driver_that_does_not_open_for_us_stays_open_for_others(driver: Driver) -> None:
    pynvml.nvmlInit()
    driver.returns("nvmlInitWithFlags", 18)
    readings = Readings()
    with pytest.raises(CallFailed):
        readings.sampler.open()
    readings.sampler.close()
    driver.returns("nvmlInitWithFlags", 0)
    assert pynvml.nvmlDeviceGetCount() == 8


def test_what_is_said_is_said_once(driver: Driver, readings: Readings, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        driver.gpu(1, error=15)
        for _ in range(5):
            readings.read(seconds=61)
    assert caplog.text.count("GPU 1 (") == 1
