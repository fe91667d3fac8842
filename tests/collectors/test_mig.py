"""GPUs that are cut into slices."""

import pytest

from rlotel.collectors.visible import visible
from rlotel.semconv import metrics as m
from tests.collectors.conftest import BUSY, Driver, Readings


@pytest.fixture
def sliced(driver: Driver) -> Readings:
    """GPU 1 of two, cut in two slices, of which one works."""
    driver.set(count=2)
    driver.gpu(1, mig=2)
    driver.gpu("1.mig1", mem_total=10_000_000_000, mem_used=4_000_000_000, mem_reserved=0, sms=33)
    driver.gpu("1.mig1", gpm2_milli=50_000, gpm3_milli=20_000, gpm5_milli=40_000, gpm10_milli=30_000)
    driver.gpu("1.mig2", mem_total=20_000_000_000, mem_used=0, mem_reserved=0)
    readings = Readings()
    readings.sampler.open()
    readings.read(times=2)
    return readings


SLICE = "GPU 1 MIG 1/0"


def test_a_slice_has_memory_and_activity_of_its_own(sliced: Readings) -> None:
    assert sliced.value(m.HW_GPU_MEMORY_USAGE, SLICE, hw__parent="GPU-00000001-fa4e-4000-8000-000000000001") == 4e9
    assert sliced.value(m.HW_GPU_MEMORY_LIMIT, SLICE) == 10e9
    assert sliced.value(m.HW_GPU_MEMORY_UTILIZATION, SLICE) == 0.4
    assert sliced.value(m.GPU_SM_UTILIZATION, SLICE) == 0.5
    assert sliced.value(m.GPU_OFU, SLICE) == pytest.approx(0.4 * 1755 / 1980)
    assert sliced.value(m.HW_GPU_MEMORY_USAGE, "GPU 1 MIG 2/0") == 0
    assert sliced.value(m.GPU_SM_UTILIZATION, "GPU 1 MIG 2/0") is None


def test_power_clocks_errors_and_state_are_the_whole_gpus(sliced: Readings) -> None:
    for metric in (m.HW_POWER, m.HW_ENERGY):
        assert sliced.values(metric).keys() == {"GPU 0", "GPU 1"}
    assert sliced.value(m.HW_STATUS, 1, hw__state="ok") == 1
    assert sliced.value(m.HW_STATUS, SLICE, hw__state="ok") is None
    assert sliced.value(m.HW_ERRORS, 1, error__type="corrected") == 0


def test_memory_of_a_cut_gpu_is_not_counted_twice(sliced: Readings) -> None:
    assert sliced.values(m.HW_GPU_MEMORY_USAGE) == {"GPU 0": BUSY["mem_used"], SLICE: 4e9, "GPU 1 MIG 2/0": 0}


def test_utilization_which_a_cut_gpu_cannot_say_is_absent(sliced: Readings) -> None:
    assert sliced.values(m.HW_GPU_UTILIZATION).keys() == {"GPU 0"}


def test_a_slices_peak_is_its_share(sliced: Readings) -> None:
    assert sliced.value(m.GPU_PEAK_FLOPS, SLICE) == pytest.approx(989.4e12 * 33 * 128 / 16896)
    assert sliced.value(m.GPU_PEAK_FLOPS, 1) is None


def test_a_slice_is_found_by_its_uuid(sliced: Readings) -> None:
    uuid = "MIG-00000001-0000-4000-8000-000000000002"
    found = visible(sliced.sampler.gpus, {"CUDA_VISIBLE_DEVICES": uuid})
    assert found is not None
    assert [(one.uuid, one.parent, one.instances) for one in found] == [
        (uuid, "GPU-00000001-fa4e-4000-8000-000000000001", (2, 0))
    ]


def test_a_lost_gpu_takes_its_slices_along(driver: Driver, sliced: Readings) -> None:
    driver.gpu(1, error=15)
    sliced.read()
    assert sliced.values(m.HW_GPU_MEMORY_USAGE).keys() == {"GPU 0"}
    assert sliced.value(m.HW_STATUS, 1, hw__state="failed") == 1
