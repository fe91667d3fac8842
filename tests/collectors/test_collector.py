"""The collector in a session: what is exported, by whom, and what never waits for it."""

import os
import signal
import subprocess
import sys
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
from tests.collectors.conftest import Builds, Driver, until
from tests.conftest import Program

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
    telemetry = opened({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
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


def test_a_worker_of_which_only_the_role_is_known_reads_too(driver: Driver, opened: Open) -> None:
    telemetry = opened({"RLOTEL_ATTEMPT": "a"})
    telemetry.session.process.use_gpus("rollout", "4")

    def roles() -> list[object]:
        return [point.attributes.get("rl.role") for point in telemetry.points(m.HW_POWER)]

    until(lambda: roles() == [None] * 4 + ["rollout"] + [None] * 3)


RANK = """
import sys
import rlotel
with rlotel.instrument():
    with rlotel.train():
        print("ready", flush=True)
        sys.stdin.read()
"""


def test_of_four_ranks_one_reads_and_another_takes_over_when_it_is_killed(builds: Builds, tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("RLOTEL_", "OTEL_"))}
    environ |= {
        "LD_LIBRARY_PATH": str(builds.new),
        "TMPDIR": str(tmp_path),
        "MASTER_ADDR": "h",
        "MASTER_PORT": "1",
    }
    environ |= {"RLOTEL_EXPORT_INTERVAL": "0.2", "RLOTEL_ATTEMPT": "a"}
    ranks: dict[int, subprocess.Popen[bytes]] = {}

    def readers() -> set[int]:
        return {
            rank
            for rank in ranks
            if (file := tmp_path / f"{rank}.jsonl").exists() and capture.read(file).points("hw.power")
        }

    with ExitStack() as stack:
        for rank in range(4):
            mine = {"RANK": str(rank), "LOCAL_RANK": str(rank), "RLOTEL_CAPTURE": str(tmp_path / f"{rank}.jsonl")}
            ranks[rank] = stack.enter_context(
                subprocess.Popen([sys.executable, "-c", RANK], env={**environ, **mine}, stdin=subprocess.PIPE)
            )
        until(readers, 60)
        # By now all have had their chance.
        until(lambda: all((tmp_path / f"{rank}.jsonl").exists() for rank in ranks), 60)
        first = readers()
        assert len(first) == 1
        for rank in first:
            ranks[rank].send_signal(signal.SIGKILL)
        until(lambda: readers() - first, 60)
        assert len(readers() - first) == 1
        for rank in ranks:
            stream = ranks[rank].stdin
            assert stream is not None
            stream.close()


LOOP = """
import sys
import rlotel
with rlotel.instrument():
    with rlotel.loop():
        sys.stdin.read()
"""
LAUNCHER = """
import sys
import rlotel
with rlotel.instrument():
    sys.stdin.read()
"""


def test_the_process_with_the_loop_reads_as_long_as_it_is_there(builds: Builds, tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("RLOTEL_", "OTEL_"))}
    environ |= {"LD_LIBRARY_PATH": str(builds.new), "TMPDIR": str(tmp_path), "RLOTEL_RUN_ID": "r"}
    environ["RLOTEL_EXPORT_INTERVAL"] = "0.2"

    def latest(name: str) -> int:
        file = tmp_path / name
        return max((p.time_ns for p in capture.read(file).points("hw.power")), default=0) if file.exists() else 0

    def begun(code: str, name: str, **more: str) -> subprocess.Popen[bytes]:
        mine = {"RLOTEL_CAPTURE": str(tmp_path / name), **more}
        return subprocess.Popen([sys.executable, "-c", code], env={**environ, **mine}, stdin=subprocess.PIPE)

    with begun(LAUNCHER, "launcher") as launcher:
        until(lambda: latest("launcher"), 60)
        with begun(LOOP, "loop", RLOTEL_ATTEMPT="a") as loop:
            until(lambda: latest("loop") > latest("launcher") + 3e9, 60)
            assert loop.stdin is not None
            loop.stdin.close()
        until(lambda: latest("launcher") > latest("loop"), 60)
        assert launcher.stdin is not None
        launcher.stdin.close()


def test_a_hanging_driver_does_not_delay_the_end_of_the_program(
    builds: Builds, tmp_path: Path, program: Program
) -> None:
    control = tmp_path / "control"
    control.write_text("count=2\ndelay_us.nvmlDeviceGetPowerUsage=600000000\n")
    out = program(
        """
        import os, time
        import rlotel
        rlotel.instrument(run_id="r", capture="capture.jsonl")
        with rlotel.loop(iteration=1), rlotel.train():
            time.sleep(2)  # the thread is in the driver by now
            child = os.fork()
            if not child:
                os._exit(0)
            os.waitpid(child, 0)
        print(time.time())
        """,
        LD_LIBRARY_PATH=str(builds.new),
        FAKE_NVML_CONTROL=str(control),
        TMPDIR=str(tmp_path),
    ).stdout
    assert time.time() - float(out) < 20


def test_a_forked_child_neither_hangs_nor_repeats_its_parent(
    builds: Builds, tmp_path: Path, program: Program
) -> None:
    control = tmp_path / "control"
    control.write_text("count=2\n")
    program(
        """
        import os, time
        import rlotel
        from rlotel import capture

        def seen(pid, name="hw.power"):
            path = f"{os.environ['TMPDIR']}/rlotel-{os.getuid()}/r-{pid}.jsonl"
            return capture.read(path).points(name) if os.path.exists(path) else []

        rlotel.instrument(run_id="r", export_interval=0.1)
        parent = os.getpid()
        while not seen(parent):
            time.sleep(0.05)
        child = os.fork()
        if not child:
            for number in range(3):
                with rlotel.loop(iteration=number), rlotel.train():
                    time.sleep(0.2)
            rlotel.uninstrument()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert seen(child, "rl.loop.duration")
        assert not seen(child)
        before = len(seen(parent))
        while len(seen(parent)) == before:
            time.sleep(0.05)
        """,
        LD_LIBRARY_PATH=str(builds.new),
        FAKE_NVML_CONTROL=str(control),
        TMPDIR=str(tmp_path),
        timeout=120,
    )


def test_without_a_driver_there_is_one_line_and_training_goes_on(program: Program, tmp_path: Path) -> None:
    code = """
        import logging, time
        logging.basicConfig(level=logging.{level})
        import rlotel
        rlotel.instrument(run_id="r", capture="capture.jsonl")
        with rlotel.loop(iteration=1), rlotel.train():
            time.sleep(1)
        """
    asked = program(code.format(level="WARNING"), RLOTEL_GPU="1", TMPDIR=str(tmp_path))
    lines = [line for line in asked.stderr.splitlines() if "GPU" in line]
    assert len(lines) == 1
    assert lines[0].startswith("WARNING:rlotel:rlotel: there are no GPU metrics from this node: no NVIDIA driver:")
    names = capture.read(tmp_path / "capture.jsonl").names()
    assert "rl.loop.duration" in names
    assert not [name for name in names if name.startswith(("hw.", "rl.gpu.", "rlotel.gpu."))]
    unasked = program(code.format(level="INFO"), TMPDIR=str(tmp_path))
    assert unasked.stderr.count("there are no GPU metrics") == 1
    off = program(code.format(level="INFO"), RLOTEL_GPU="0", TMPDIR=str(tmp_path))
    assert "GPU" not in off.stderr


def test_without_the_package_it_is_said_how_to_get_it(program: Program, tmp_path: Path) -> None:
    out = program(
        """
        import sys, time
        sys.modules["pynvml"] = None
        import rlotel
        rlotel.instrument(run_id="r", capture="capture.jsonl", gpu=True)
        time.sleep(1)
        """,
        TMPDIR=str(tmp_path),
    )
    assert out.stderr.count("pip install 'rlotel[gpu]'") == 1


def test_reading_is_left_to_one_where_there_is_no_place_to_meet(
    driver: Driver, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (place / f"rlotel-{os.getuid()}").touch()
    with captured({"LOCAL_RANK": "1"}, gpu=True, run_id="second") as telemetry:
        with rlotel.train():
            time.sleep(1)
        assert not telemetry.points(m.HW_POWER)
    with captured({"LOCAL_RANK": "0"}, gpu=True, run_id="first") as telemetry:
        until(lambda: telemetry.points(m.HW_POWER))
    assert caplog.text.count("cannot agree on who reads the GPUs") == 1
