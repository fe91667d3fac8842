"""Errors that the driver reports by number: as events, or from the kernel's log."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlotel.collectors import xids
from rlotel.collectors.devices import find
from rlotel.collectors.nvml import Nvml
from rlotel.collectors.xids import LoggedXid, Xids, from_log
from rlotel.semconv import metrics as m
from tests.collectors.conftest import Driver, Readings


def test_an_event_is_counted_once_by_gpu_and_number(driver: Driver, readings: Readings) -> None:
    readings.read()
    for code in (79, 48, 79):
        driver.xid(5, code)
    readings.read(times=3)
    assert readings.value(m.HW_ERRORS, 5, error__type="xid") == 3
    assert readings.value(m.GPU_XID_ERRORS, 5, rl__gpu__xid__code=79) == 2
    assert readings.value(m.GPU_XID_ERRORS, 5, rl__gpu__xid__code=48) == 1
    assert readings.value(m.HW_ERRORS, 4, error__type="xid") == 0
    assert readings.values(m.GPU_XID_ERRORS, rl_gpu_xid_code=79) == {"GPU 5": 2}


def test_an_error_is_told_of_a_gpu_that_it_has_cost(
    driver: Driver, readings: Readings, caplog: pytest.LogCaptureFixture
) -> None:
    readings.read()
    driver.xid(2, 79)
    driver.gpu(2, error=15)
    driver.returns("nvmlDeviceGetUUID", 0, 2)
    readings.read()
    assert readings.value(m.HW_ERRORS, 2, error__type="xid") == 1
    assert readings.value(m.HW_STATUS, 2, hw__state="failed") == 1
    assert "GPU 2 (GPU-00000002-fa4e-4000-8000-000000000002) reports XID 79" in caplog.text


def test_events_of_other_kinds_are_none(driver: Driver, readings: Readings) -> None:
    readings.read()
    driver.event(0, 16, 0)
    driver.event(0, 8, 0)
    driver.event(0, 16, 79)
    readings.read()
    assert readings.value(m.HW_ERRORS, error__type="xid") == 0
    assert m.GPU_XID_ERRORS not in readings.sample.points


def test_errors_of_the_events_are_not_asked_for_in_a_circle(driver: Driver, readings: Readings) -> None:
    driver.returns("nvmlEventSetWait_v2", 999)
    readings.read(times=30)
    assert driver.called("nvmlEventSetWait_v2") == 1
    driver.returns("nvmlEventSetWait_v2", 0)
    readings.read(seconds=61)
    driver.xid(0, 48)
    readings.read()
    assert readings.value(m.GPU_XID_ERRORS, rl__gpu__xid__code=48) == 1


LINE = "6,1234,5678,-;NVRM: Xid (PCI:0000:b4:00): 79, pid=1234, GPU has fallen off the bus."


def test_a_line_of_the_kernels_log_is_understood() -> None:
    assert from_log(LINE) == LoggedXid(79, "b4:00")
    assert from_log("NVRM: Xid (PCI:0000:0A:00.0): 31, pid='<unknown>'") == LoggedXid(31, "0a:00")
    assert from_log("NVRM: GPU at PCI:0000:b4:00: GPU-x") is None


@given(st.text())
def test_no_line_of_the_kernels_log_upsets_us(line: str) -> None:
    assert from_log(line) is None or xids._LINE.search(line)


def test_without_events_the_kernels_log_is_read_from_its_end(driver: Driver, tmp_path: Path) -> None:
    driver.returns("nvmlDeviceRegisterEvents", 3)
    log = tmp_path / "kmsg"
    log.write_text("NVRM: Xid (PCI:0000:10:00): 13, before our time\n")
    nvml = Nvml()
    nvml.open()
    gpus = list(find(nvml, lambda _: None))
    listener = Xids(nvml, gpus, kernel_log=log)
    assert listener.heard == {gpu.id.uuid for gpu in gpus}
    assert listener.take(0.0) == []
    with log.open("a") as end:
        end.write("NVRM: Xid (PCI:0000:12:00): 79, GPU has fallen off the bus.\n")
    assert listener.take(1.0) == [(79, gpus[2].id.uuid)]
    assert listener.take(2.0) == []
    listener.close()
    nvml.close()


def test_without_events_and_log_nothing_is_said_of_errors(driver: Driver, tmp_path: Path) -> None:
    driver.returns("nvmlDeviceRegisterEvents", 3)
    nvml = Nvml()
    nvml.open()
    listener = Xids(nvml, find(nvml, lambda _: None), kernel_log=tmp_path / "none")
    assert (listener.heard, listener.take(0.0)) == (set(), [])
    nvml.close()


def test_the_log_is_closed(driver: Driver, tmp_path: Path) -> None:
    driver.returns("nvmlDeviceRegisterEvents", 3)
    log = tmp_path / "kmsg"
    log.touch()
    nvml = Nvml()
    nvml.open()
    before = len(list(Path("/proc/self/fd").iterdir()))
    Xids(nvml, find(nvml, lambda _: None), kernel_log=log).close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    nvml.close()
