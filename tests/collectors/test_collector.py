"""The collector in a session: what is exported, by whom, and what never waits for it."""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import rlotel
from rlotel import capture, conformance
from rlotel.collectors import gpu
from rlotel.semconv import metrics as m
from rlotel.testing import Telemetry, captured
from tests.collectors.conftest import Driver, until

Open = Callable[..., Telemetry]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own, where processes meet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def opened(driver: Driver, place: Path) -> Iterator[Open]:
    """Opens a session that reads GPUs."""
    with ExitStack() as stack:

        def open_(environ: dict[str, str] | None = None, **settings: Any) -> Telemetry:
            return stack.enter_context(captured(environ, gpu=True, **settings))

        yield open_


def test_what_is_exported_has_opentelemetrys_kinds_and_units(driver: Driver, place: Path) -> None:
    path = place / "capture.jsonl"
    with rlotel.instrument(run_id="r", capture=str(path), gpu=True) as session:
        driver.xid(0, 48)
        pending: list[object] = []

        def seen() -> bool:
            if not pending:
                driver.xid(0, 48)  # it may come before anyone listens
            session.flush()
            found = capture.read(path).points("rl.gpu.xid.errors")
            pending.extend(found)
            return bool(found) and bool(capture.read(path).points("rl.gpu.ofu"))

        until(seen)
    kinds = {point.name: (point.kind, point.unit) for point in capture.read(path).points()}
    assert {name: kinds.get(name) for name in KINDS} == KINDS
    assert conformance.check(path.read_text().splitlines()) == []
    xid = capture.read(path).points("rl.gpu.xid.errors")[0]
    assert xid.attributes["rl.gpu.xid.code"] == 48


KINDS = {
    "hw.gpu.utilization": ("gauge", "1"),
    "hw.gpu.memory.utilization": ("gauge", "1"),
    "hw.gpu.memory.usage": ("updowncounter", "By"),
    "hw.gpu.memory.limit": ("updowncounter", "By"),
    "hw.gpu.io": ("counter", "By"),
    "hw.power": ("gauge", "W"),
    "hw.energy": ("counter", "J"),
    "hw.temperature": ("gauge", "Cel"),
    "hw.temperature.limit": ("gauge", "Cel"),
    "hw.errors": ("counter", "{error}"),
    "hw.status": ("updowncounter", "1"),
    "rl.gpu.sm.utilization": ("gauge", "1"),
    "rl.gpu.sm.occupancy": ("gauge", "1"),
    "rl.gpu.tensor.utilization": ("gauge", "1"),
    "rl.gpu.memory.bandwidth.utilization": ("gauge", "1"),
    "rl.gpu.memory.reserved": ("updowncounter", "By"),
    "rl.gpu.ofu": ("gauge", "1"),
    "rl.gpu.peak_flops": ("gauge", "{flop}/s"),
    "rl.gpu.nvlink.io": ("counter", "By"),
    "rl.gpu.clock.frequency": ("gauge", "Hz"),
    "rl.gpu.power.limit": ("gauge", "W"),
    "rl.gpu.throttle.time": ("counter", "s"),
    "rl.gpu.rows.remapped": ("counter", "{row}"),
    "rl.gpu.xid.errors": ("counter", "{error}"),
    "rlotel.gpu.poll.duration": ("histogram", "s"),
}


def test_an_old_sample_is_no_present_one(driver: Driver, opened: Open) -> None:
    telemetry = opened()
    until(lambda: telemetry.points(m.HW_POWER))
    driver.set(**{"delay_us.nvmlDeviceGetPowerUsage": 3_000_000})
    try:
        until(lambda: not _reads(driver))
        telemetry.clock.advance(gpu.STALE + 1)
        assert not telemetry.points(m.HW_POWER)
        assert not telemetry.points(m.HW_ENERGY)
    finally:
        driver.set(**{"delay_us.nvmlDeviceGetPowerUsage": 0})


def _reads(driver: Driver) -> bool:
    """Whether the sampler gets on."""
    before = driver.called("nvmlDeviceGetTemperature", 0)
    time.sleep(1.5)
    return driver.called("nvmlDeviceGetTemperature", 0) > before


def test_a_driver_that_hangs_is_told_of_once_and_holds_up_nobody(
    driver: Driver, opened: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(gpu, "STUCK", 0.2)
    telemetry = opened()
    until(lambda: telemetry.points(m.HW_POWER))
    driver.set(**{"delay_us.nvmlDeviceGetPowerUsage": 2_000_000})

    def told() -> bool:
        telemetry.points()
        return "has not answered" in caplog.text

    try:
        until(told)
        with rlotel.loop(iteration=1):
            telemetry.clock.advance(1)
        assert telemetry.value("rl.loop.duration") == 1
        began = time.monotonic()
        rlotel.uninstrument()
        assert time.monotonic() - began < 5
    finally:
        driver.set(**{"delay_us.nvmlDeviceGetPowerUsage": 0})
    assert caplog.text.count("has not answered") == 1
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "rlotel-gpu"])


def test_a_driver_that_is_gone_and_back_is_told_of(
    driver: Driver, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = opened()
    until(lambda: telemetry.points(m.HW_POWER))
    driver.returns("nvmlInitWithFlags", 18)
    driver.returns("nvmlDeviceGetPowerUsage", 18)
    until(lambda: "the NVIDIA driver is gone" in caplog.text)
    assert not telemetry.points(m.HW_POWER)
    driver.returns("nvmlInitWithFlags", 0)
    driver.returns("nvmlDeviceGetPowerUsage", 0)
    telemetry.clock.advance(60)
    until(lambda: telemetry.points(m.HW_POWER))
    assert "the NVIDIA driver is back" in caplog.text
    assert caplog.text.count("the NVIDIA driver is gone") == 1


def test_failures_of_a_reading_are_counted(driver: Driver, opened: Open) -> None:
    driver.returns("nvmlDeviceGetPowerUsage", 999, 3)
    telemetry = opened()
    until(lambda: telemetry.value("rlotel.gpu.poll.failures", **{"error.type": "NVMLError_Unknown"}))
    until(lambda: telemetry.points("rlotel.gpu.poll.duration"))


def test_no_gpu_is_read_unless_asked(driver: Driver, place: Path) -> None:
    with captured() as telemetry:
        assert "rlotel-gpu" not in [thread.name for thread in threading.enumerate()]
        assert not telemetry.points(m.HW_POWER)


def test_a_gpu_is_named_for_what_it_is_used_for(driver: Driver, opened: Open) -> None:
    telemetry = opened()
    until(lambda: telemetry.points(m.HW_POWER))
    process = telemetry.session.process
    process.use_gpus("trainer", "0,1")
    process.use_gpus("rollout", "GPU-00000001,GPU-00000002")
    process.use_gpus("trainer", "0,1")

    def roles() -> dict[object, object]:
        telemetry.clock.advance(0.05)
        return {
            point.attributes["hw.name"]: point.attributes.get("rl.role") for point in telemetry.points(m.HW_POWER)
        }

    known = {"GPU 0": "trainer", "GPU 1": "shared", "GPU 2": "rollout"}
    until(lambda: roles() == {**dict.fromkeys((f"GPU {n}" for n in range(8)), None), **known})
    with pytest.raises(ValueError, match="rollout, shared, trainer, not 'critic'"):
        process.use_gpus("critic")


def test_a_worker_that_has_begun_to_work_reads_where_no_launcher_does(driver: Driver, opened: Open) -> None:
    telemetry = opened({"RLOTEL_ATTEMPT": "a"})
    assert "rlotel-gpu" not in [thread.name for thread in threading.enumerate()]
    with rlotel.train():
        until(lambda: telemetry.points(m.HW_POWER))


def test_a_worker_of_which_only_the_role_is_known_reads_too(
    driver: Driver, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    telemetry = opened({"RLOTEL_ATTEMPT": "a"})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4")  # as Ray does when it gives a worker its task
    telemetry.session.process.use_gpus("rollout")

    def roles() -> list[object]:
        return [point.attributes.get("rl.role") for point in telemetry.points(m.HW_POWER)]

    until(lambda: roles() == [None] * 4 + ["rollout"] + [None] * 3)


def test_reading_is_left_to_one_where_there_is_no_place_to_meet(
    driver: Driver, place: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / f"rlotel-{os.getuid()}").touch()
    monkeypatch.setenv("LOCAL_RANK", "1")
    with captured(gpu=True, run_id="second") as telemetry:
        with rlotel.train():
            time.sleep(1)
        assert not telemetry.points(m.HW_POWER)
    monkeypatch.setenv("LOCAL_RANK", "0")
    with captured(gpu=True, run_id="first") as telemetry:
        until(lambda: telemetry.points(m.HW_POWER))
    assert caplog.text.count("cannot agree on who reads the GPUs") == 1
