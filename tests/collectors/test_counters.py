"""Counters never fall: not at a reset of the driver's, not at a wrap, not while a reading fails."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlotel.collectors.tallies import Tallies, increase
from rlotel.instruments import Attributes
from rlotel.semconv import metrics as m
from tests.collectors.conftest import Driver, Readings

COUNTS = st.integers(min_value=0, max_value=2**40)


@given(st.lists(COUNTS, max_size=30))
def test_a_total_is_what_a_counter_counted_while_it_was_watched(steps: list[int]) -> None:
    tallies, reading = Tallies(), 10**6
    total = tallies.follow("series", "counter", reading)
    for step in steps:
        reading += step
        total = tallies.follow("series", "counter", reading)
    assert total == sum(steps)


@given(st.lists(COUNTS, min_size=1, max_size=30), st.sampled_from([None, 32, 64]))
def test_a_total_never_falls_whatever_a_counter_does(values: list[int], bits: int | None) -> None:
    tallies = Tallies()
    totals = [tallies.follow("series", "counter", value, bits) for value in values]
    assert totals == sorted(totals)
    assert totals[0] == 0


@given(st.integers(min_value=2**31, max_value=2**32 - 1), st.integers(min_value=0, max_value=2**31 - 1))
def test_a_wrap_is_counted_through(before: int, after: int) -> None:
    assert increase(before, after, 32) == after + 2**32 - before


@given(st.integers(min_value=0, max_value=2**31 - 1), st.data())
def test_a_fall_from_below_the_middle_is_a_reset(before: int, data: st.DataObject) -> None:
    after = data.draw(st.integers(min_value=0, max_value=max(0, before - 1)))
    assert increase(before, after, 32) == (after if after < before else 0)
    assert increase(before, after) == (after if after < before else 0)


def test_several_counters_make_one_total() -> None:
    tallies = Tallies()
    for counter, value in (("a", 5), ("b", 7)):
        tallies.follow("series", counter, value)
    tallies.follow("series", "a", 8)
    assert tallies.follow("series", "b", 7) == 3


def test_energy_goes_on_over_a_driver_that_was_loaded_anew(driver: Driver, readings: Readings) -> None:
    readings.read()
    driver.gpu(energy_mj=6_000_000)
    readings.read()
    assert readings.value(m.HW_ENERGY) == 1000
    driver.gpu(energy_mj=2_000)
    readings.read()
    assert readings.value(m.HW_ENERGY) == 1002


def test_a_reading_that_fails_loses_nothing_of_a_counter(driver: Driver, readings: Readings) -> None:
    readings.read()
    driver.returns("nvmlDeviceGetTotalEnergyConsumption", 999, 0)
    driver.gpu(energy_mj=5_500_000)
    readings.read()
    assert readings.value(m.HW_ENERGY) is None
    driver.returns("nvmlDeviceGetTotalEnergyConsumption", 0, 0)
    driver.gpu(energy_mj=6_000_000)
    readings.read()
    assert readings.value(m.HW_ENERGY) == 1000


@pytest.mark.parametrize("kind", [1, 3])
def test_nvlink_bytes_count_through_a_wrap(driver: Driver, readings: Readings, kind: int) -> None:
    bits = {1: 32, 3: 64}[kind]
    driver.gpu(field138_type=kind, field138=2**bits - 100)
    readings.read()
    driver.gpu(field138=50)
    readings.read()
    transmitted = readings.value(m.GPU_NVLINK_IO, network__io__direction="transmit")
    assert transmitted is not None
    # A double has 53 bits: near 2**64 the count is right to some KiB.
    assert transmitted == pytest.approx(150 * 1024, abs=0 if bits == 32 else 4096 * 1024)


def test_a_pcie_counter_of_32_bits_says_nothing_and_the_monitor_stands_in(
    driver: Driver, readings: Readings
) -> None:
    driver.gpu(field197_type=1, field197=2**32 - 100)
    readings.read(times=2)
    driver.gpu(field197=50)
    readings.read()
    assert readings.value(m.HW_GPU_IO, network__io__direction="transmit") == 2 * 2**20  # 1 MiB/s for 2 s
    assert readings.value(m.HW_GPU_IO, network__io__direction="receive") == 0  # by its own counter


def test_without_counters_bytes_come_from_the_monitors_rates(driver: Driver) -> None:
    for field in (138, 139, 197, 198):
        driver.gpu(**{f"field{field}_ret": 3})
    readings = Readings()
    readings.sampler.open()
    readings.read(times=3, seconds=2)
    assert readings.value(m.HW_GPU_IO, network__io__direction="transmit") == 4 * 2**20
    assert readings.value(m.HW_GPU_IO, network__io__direction="receive") == 8 * 2**20
    assert readings.value(m.GPU_NVLINK_IO, network__io__direction="receive") == 12 * 2**20
    assert readings.value(m.GPU_NVLINK_IO, network__io__direction="transmit") == 16 * 2**20


def test_every_throttle_reason_of_the_mask_is_counted(driver: Driver) -> None:
    driver.gpu(clock_reasons=0x48)
    for field in (74, 76, 269, 270, 271):
        driver.gpu(**{f"field{field}_ret": 3})
    readings = Readings()
    readings.sampler.open()
    readings.read(times=4)
    seconds = {
        str(labels["rl.gpu.throttle.reason"]): value
        for value, labels in readings.sample.points[m.GPU_THROTTLE_TIME]
        if labels["hw.name"] == "GPU 0"
    }
    assert seconds == {
        "hw_slowdown": 3,
        "hw_thermal": 3,
        "sw_power_cap": 0,
        "sw_thermal": 0,
        "hw_power_brake": 0,
        "sync_boost": 0,
    }


def test_errors_of_links_are_not_those_that_hopper_always_calls_zero(driver: Driver) -> None:
    driver.gpu(0, field52=0, field59=0)
    driver.gpu(1, cc_major=8, cc_minor=0, field52=3, field59=4)
    readings = Readings()
    readings.sampler.open()
    readings.read()
    driver.gpu(0, field161=7)
    driver.gpu(1, field52=5)
    readings.read(seconds=20)
    assert readings.value(m.HW_ERRORS, 0, error__type="nvlink_replay") == 4  # 2 on each of 2 links
    assert readings.value(m.HW_ERRORS, 1, error__type="nvlink_replay") == 2


def test_a_role_that_becomes_known_begins_its_own_series(driver: Driver, readings: Readings) -> None:
    uuid = readings.sampler.gpus[0].uuid
    readings.read()
    driver.gpu(energy_mj=6_000_000)
    readings.read()
    readings.sampler.assign({uuid: "trainer"})
    driver.gpu(ecc_cor_vol=8)
    driver.gpu(energy_mj=6_500_000)
    readings.read()
    assert readings.value(m.HW_ENERGY, rl__role="trainer") == 500
    assert readings.value(m.HW_ERRORS, rl__role="trainer", error__type="corrected") == 1
    assert all(labels.get("rl.role") == "trainer" for _, labels in _of(readings, uuid))


def _of(readings: Readings, uuid: str) -> list[tuple[float, Attributes]]:
    return [
        point
        for points in readings.sample.points.values()
        for point in points
        if uuid in (point[1]["hw.id"], point[1].get("hw.parent"))
    ]
