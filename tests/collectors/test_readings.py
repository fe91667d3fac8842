"""What is read of a healthy GPU, and what follows when calls fail."""

import ctypes

import pynvml
import pytest

from rlotel.collectors.nvml import CallFailed
from rlotel.semconv import metrics as m
from rlotel.semconv.types import Metric
from tests.collectors.conftest import BUSY, Driver, Readings

CODES = (*range(1, 31), 77, 999)
"""All of NVML's errors, and one that nobody knows yet."""

OF_A_GPU = (
    "nvmlDeviceGetCudaComputeCapability",
    "nvmlDeviceGetMaxClockInfo",
    "nvmlDeviceGetName",
    "nvmlDeviceGetPciInfo_v3",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetTotalEnergyConsumption",
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetClockInfo",
    "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlGpmQueryDeviceSupport",
    "nvmlGpmSampleGet",
    "nvmlDeviceGetEnforcedPowerLimit",
    "nvmlDeviceGetTemperatureThreshold",
    "nvmlDeviceGetTotalEccErrors",
    "nvmlDeviceGetPcieReplayCounter",
    "nvmlDeviceGetRemappedRows",
    "nvmlDeviceRegisterEvents",
    "nvmlDeviceGetUUID",
)
OF_THE_NODE = (
    "nvmlInitWithFlags",
    "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlGpmSampleAlloc",
    "nvmlGpmMetricsGet",
    "nvmlEventSetCreate",
    "nvmlEventSetWait_v2",
)


def test_everything_of_a_busy_gpu_is_read_in_the_models_units(driver: Driver, readings: Readings) -> None:
    readings.read()
    driver.gpu(energy_mj=5_650_000, field138=1010, field139=2020, field197=3_000_100, field198=4_000_200)
    driver.gpu(field74=1_500_000_000, field76=2_250_000_000, ecc_cor_vol=8, ecc_unc_vol=4, remap_unc=2)
    driver.gpu(pcie_replay=9, field161=6, field162=8)
    readings.read(times=15)
    uuid = "GPU-00000000-fa4e-4000-8000-000000000000"
    gpu = {"hw.id": uuid, "hw.name": "GPU 0", "hw.vendor": "NVIDIA", "hw.type": "gpu"}
    gpu["hw.model"] = "NVIDIA H100 80GB HBM3"

    def point(metric: Metric, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        given = {name.replace("__", "."): value for name, value in labels.items()}
        return metric.name, tuple(sorted({**gpu, **given}.items()))

    def sensor(place: str) -> dict[str, str]:
        return {"hw__id": f"{uuid}/{place}", "hw__parent": uuid, "hw__sensor_location": place}

    reason = "rl__gpu__throttle__reason"
    direction = "network__io__direction"
    error = "error__type"
    assert readings.all() == pytest.approx(
        {
            point(m.HW_GPU_UTILIZATION, hw__gpu__task="general"): 0.97,
            point(m.HW_GPU_MEMORY_USAGE): 60e9,
            point(m.HW_GPU_MEMORY_LIMIT): 85520809984,
            point(m.HW_GPU_MEMORY_UTILIZATION): 60e9 / 85520809984,
            point(m.GPU_MEMORY_RESERVED): 559939584,
            point(m.HW_POWER): 650,
            point(m.HW_ENERGY): 650,
            point(m.HW_TEMPERATURE, **sensor("gpu")): 61,
            point(m.HW_TEMPERATURE, **sensor("memory")): 70,
            point(m.GPU_CLOCK_FREQUENCY, rl__gpu__clock="sm"): 1755e6,
            point(m.GPU_CLOCK_FREQUENCY, rl__gpu__clock="memory"): 2619e6,
            point(m.GPU_THROTTLE_TIME, **{reason: "sw_power_cap"}): 0.5,
            point(m.GPU_THROTTLE_TIME, **{reason: "sync_boost"}): 0.25,
            point(m.GPU_THROTTLE_TIME, **{reason: "sw_thermal"}): 0,
            point(m.GPU_THROTTLE_TIME, **{reason: "hw_thermal"}): 0,
            point(m.GPU_THROTTLE_TIME, **{reason: "hw_power_brake"}): 0,
            point(m.GPU_THROTTLE_TIME, **{reason: "hw_slowdown"}): 0,
            point(m.GPU_SM_UTILIZATION): 0.88,
            point(m.GPU_SM_OCCUPANCY): 0.45,
            point(m.GPU_TENSOR_UTILIZATION): 0.5,
            point(m.GPU_MEMORY_BANDWIDTH_UTILIZATION): 0.7,
            point(m.GPU_OFU): 0.5 * 1755 / 1980,
            point(m.HW_GPU_IO, **{direction: "transmit"}): 100,
            point(m.HW_GPU_IO, **{direction: "receive"}): 200,
            point(m.GPU_NVLINK_IO, **{direction: "transmit"}): 10 * 1024,
            point(m.GPU_NVLINK_IO, **{direction: "receive"}): 20 * 1024,
            point(m.GPU_POWER_LIMIT): 700,
            point(m.HW_TEMPERATURE_LIMIT, **sensor("gpu"), hw__limit_type="throttled"): 87,
            point(m.HW_TEMPERATURE_LIMIT, **sensor("gpu"), hw__limit_type="high.critical"): 87,
            point(m.HW_ERRORS, **{error: "corrected"}): 1,
            point(m.HW_ERRORS, **{error: "uncorrected"}): 2,
            point(m.HW_ERRORS, **{error: "pcie_replay"}): 5,
            point(m.HW_ERRORS, **{error: "nvlink_replay"}): 2,
            point(m.HW_ERRORS, **{error: "nvlink_recovery"}): 4,
            point(m.HW_ERRORS, **{error: "xid"}): 0,
            point(m.GPU_ROWS_REMAPPED, rl__gpu__remap__cause="correctable"): 0,
            point(m.GPU_ROWS_REMAPPED, rl__gpu__remap__cause="uncorrectable"): 1,
            point(m.HW_STATUS, hw__state="ok"): 1,
            point(m.HW_STATUS, hw__state="degraded"): 0,
            point(m.HW_STATUS, hw__state="predicted_failure"): 0,
            point(m.HW_STATUS, hw__state="failed"): 0,
            point(m.GPU_PEAK_FLOPS, rl__gpu__dtype="bf16"): 989.4e12,
        }
    )
    assert readings.failures == {}
    assert len(readings.values(m.HW_POWER)) == 8
    assert driver.called("nvmlDeviceGetPcieThroughput", 0) == 0


@pytest.mark.parametrize("function", [*OF_A_GPU, *OF_THE_NODE])
def test_whatever_a_call_returns_values_are_right_or_absent(driver: Driver, function: str) -> None:
    driver.set(count=2)
    # What stands in for counters that are not there: it says 0, as they do while they stand still.
    driver.gpu(clock_reasons=0, gpm20_milli=0, gpm21_milli=0, gpm60_milli=0, gpm61_milli=0)
    healthy = Readings()
    healthy.sampler.open()
    healthy.read(times=2)
    healthy.sampler.close()
    of_a_gpu = function in OF_A_GPU
    for code in CODES:
        driver.returns(function, code, 0 if of_a_gpu else None)
        # A driver without the second version is one whose first has no reserved part in it: tested below.
        if (function, code) == ("nvmlDeviceGetMemoryInfo_v2", 13):
            continue
        readings = Readings()
        try:
            readings.sampler.open()
            readings.read(times=2)
        except CallFailed:  # the driver is gone: no sample at all
            continue
        finally:
            readings.sampler.close()
        right = {key: value for key, value in readings.all().items() if key[0] != m.HW_STATUS.name}
        unnamed = {_without_model(key): value for key, value in healthy.all().items()}
        for key, value in right.items():
            assert unnamed.get(_without_model(key)) == value, (function, code, key)
        if of_a_gpu:
            assert readings.all(gpu=1) == healthy.all(gpu=1), (function, code)


def _without_model(key: tuple[str, tuple[tuple[str, object], ...]]) -> object:
    name, labels = key
    return name, tuple(pair for pair in labels if pair[0] != "hw.model")


@pytest.mark.parametrize("code", [3, 4, 13, 25, 26])
def test_what_is_not_supported_is_asked_once(driver: Driver, code: int) -> None:
    driver.returns("nvmlDeviceGetTotalEccErrors", code, 0)
    driver.returns("nvmlDeviceGetPowerUsage", code, 0)
    driver.returns("nvmlGpmSampleGet", code, 0)
    readings = Readings()
    readings.sampler.open()
    readings.read(times=40)
    assert readings.value(m.HW_POWER) is None
    assert readings.value(m.HW_ERRORS, error__type="corrected") is None
    assert readings.value(m.GPU_TENSOR_UTILIZATION) is None
    assert readings.value(m.HW_ERRORS, error__type="pcie_replay") == 0
    assert driver.called("nvmlDeviceGetPowerUsage", 0) == 1
    assert driver.called("nvmlDeviceGetTotalEccErrors", 0) == 2  # of each kind of error
    assert driver.called("nvmlGpmSampleGet", 0) == 1
    assert driver.called("nvmlDeviceGetPowerUsage", 1) == 40
    assert readings.failures == {}


def test_what_fails_is_absent_counted_and_asked_again(driver: Driver, readings: Readings) -> None:
    driver.returns("nvmlDeviceGetPowerUsage", 999, 3)
    driver.gpu(3, field197_ret=999)
    readings.read(times=2)
    assert readings.value(m.HW_POWER, 3) is None
    assert readings.value(m.HW_GPU_IO, 3, network__io__direction="transmit") is None
    assert readings.failures == {"NVMLError_Unknown": 2, "NVMLError_999": 2}
    driver.returns("nvmlDeviceGetPowerUsage", 0, 3)
    driver.gpu(3, field197_ret=0)
    readings.read()
    assert readings.value(m.HW_POWER, 3) == 650
    assert readings.value(m.HW_GPU_IO, 3, network__io__direction="transmit") == 0


def test_an_old_driver_gives_what_it_knows(old_driver: Driver) -> None:
    readings = Readings()
    readings.sampler.open()
    old_driver.gpu(clock_reasons=0x8)
    readings.read(times=3)
    assert {name for name, _ in readings.all()} == {
        "hw.gpu.utilization",
        "hw.gpu.memory.usage",
        "hw.gpu.memory.limit",
        "hw.gpu.memory.utilization",
        "hw.temperature",
        "rl.gpu.throttle.time",
        "hw.status",
        "rl.gpu.peak_flops",
    }
    assert readings.value(m.HW_GPU_MEMORY_USAGE) == BUSY["mem_used"]
    assert readings.value(m.GPU_THROTTLE_TIME, rl__gpu__throttle__reason="hw_slowdown") == 2
    assert readings.value(m.GPU_THROTTLE_TIME, rl__gpu__throttle__reason="hw_thermal") == 0
    assert readings.failures == {}


def test_an_old_binding_gives_what_it_knows(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "nvmlDeviceGetFieldValues",
        "nvmlGpmQueryDeviceSupport",
        "nvmlDeviceGetCurrentClocksEventReasons",
    ):
        monkeypatch.delattr(pynvml, name)

    def without_version(handle: object) -> object:
        raise AssertionError("the memory without the reserved part cannot be asked for")

    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", without_version)
    readings = Readings()
    readings.sampler.open()
    readings.read(times=2)
    assert readings.value(m.HW_GPU_MEMORY_USAGE) is None
    assert readings.value(m.GPU_TENSOR_UTILIZATION) is None
    assert readings.value(m.HW_POWER) == 650
    assert readings.value(m.GPU_THROTTLE_TIME, rl__gpu__throttle__reason="sw_power_cap") == 1
    assert readings.failures == {}


def test_the_temperature_is_read_by_its_new_name_where_the_old_one_is_gone(driver: Driver) -> None:
    driver.returns("nvmlDeviceGetTemperature", 13)
    driver.gpu(field82=0)  # a sensor that is not there
    readings = Readings()
    readings.sampler.open()
    readings.read()
    assert readings.values(m.HW_TEMPERATURE) == {f"GPU {n}": 61 for n in range(8)}


def test_text_that_comes_as_bytes_is_text(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nvmlDeviceGetUUID", "nvmlDeviceGetName"):
        real = getattr(pynvml, name)
        monkeypatch.setattr(pynvml, name, lambda handle, real=real: real(handle).encode())
    readings = Readings()
    readings.sampler.open()
    assert readings.sampler.gpus[0].uuid == "GPU-00000000-fa4e-4000-8000-000000000000"
    assert readings.sampler.gpus[0].model == "NVIDIA H100 80GB HBM3"


def test_a_share_that_cannot_be_is_absent(driver: Driver, readings: Readings) -> None:
    driver.gpu(util=4_000_000_000, gpm5_milli=101_000, gpm2_milli=100_000)
    readings.read(times=2)
    assert readings.value(m.HW_GPU_UTILIZATION) is None
    assert readings.value(m.GPU_TENSOR_UTILIZATION) is None
    assert readings.value(m.GPU_OFU) is None
    assert readings.value(m.GPU_SM_UTILIZATION) == 1


def test_a_consumer_card_leaves_out_what_it_has_not(driver: Driver) -> None:
    driver.set(count=1)
    driver.gpu(name="NVIDIA GeForce RTX 4090", gpm=0, cc_minor=9, cc_major=8)
    for name in ("nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetRemappedRows"):
        driver.returns(name, 3)
    readings = Readings()
    readings.sampler.open()
    readings.read(times=20)
    names = {name for name, _ in readings.all()}
    assert {"rl.gpu.rows.remapped", "rl.gpu.tensor.utilization", "rl.gpu.ofu"}.isdisjoint(names)
    assert readings.value(m.HW_ERRORS, error__type="uncorrected") is None
    assert readings.value(m.HW_STATUS, hw__state="ok") == 1


def test_a_gpu_without_a_known_peak_has_none(driver: Driver) -> None:
    driver.gpu(name="Foo 9000")
    readings = Readings()
    readings.sampler.open()
    readings.read()
    assert readings.value(m.GPU_PEAK_FLOPS) is None
    assert readings.value(m.HW_POWER) == 650


@pytest.mark.parametrize(
    "structure",
    [
        "nvmlPciInfo_t",
        "c_nvmlMemory_v2_t",
        "c_nvmlFieldValue_t",
        "c_nvmlEventData_t",
        "c_nvmlGpmMetric_t",
        "c_nvmlDeviceAttributes",
    ],
)
def test_the_fake_has_the_structures_of_the_binding(driver: Driver, structure: str) -> None:
    assert driver.sizeof(structure) == ctypes.sizeof(getattr(pynvml, structure))
