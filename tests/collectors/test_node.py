"""Several processes of a node, and how each of them ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rlotel import capture
from tests.collectors.conftest import Builds, until
from tests.conftest import Program

Start = Callable[..., "subprocess.Popen[bytes]"]

LAUNCHER = """
import sys
import rlotel
with rlotel.instrument() as session:
    session.flush()  # or it would wait for a minute to learn whose it is
    sys.stdin.read()
"""
WORKER = LAUNCHER.replace("    sys.", "    with rlotel.train():\n        sys.")
LOOP = LAUNCHER.replace("    sys.", "    with rlotel.loop():\n        sys.")


@contextmanager
def running(code: str, environ: dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A program that ends when its input does."""
    with subprocess.Popen([sys.executable, "-c", code], env=environ, stdin=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            try:
                if process.poll() is None:
                    process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


@pytest.fixture
def start(builds: Builds, tmp_path: Path) -> Iterator[Start]:
    """Starts a program that captures into a file by the name it is given."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("RLOTEL_", "OTEL_"))}
    plain |= {"LD_LIBRARY_PATH": str(builds.new), "TMPDIR": str(tmp_path), "RLOTEL_EXPORT_INTERVAL": "0.2"}
    with ExitStack() as stack:

        def run(code: str, name: str, **environ: str) -> "subprocess.Popen[bytes]":
            mine = {"RLOTEL_CAPTURE": str(tmp_path / name), **environ}
            return stack.enter_context(running(code, {**plain, **mine}))

        yield run


def latest(file: Path) -> int:
    """When the last value of a GPU was exported, in ns; 0 if none was."""
    points = capture.read(file).points("hw.power") if file.exists() else []
    return max((point.time_ns for point in points), default=0)


def test_of_four_ranks_one_reads_and_another_takes_over_when_it_is_killed(start: Start, tmp_path: Path) -> None:
    meeting = {"MASTER_ADDR": "h", "MASTER_PORT": "1", "WORLD_SIZE": "4", "RLOTEL_ATTEMPT": "a"}
    ranks = {rank: start(WORKER, str(rank), RANK=str(rank), LOCAL_RANK=str(rank), **meeting) for rank in range(4)}

    def readers() -> set[int]:
        return {rank for rank in ranks if latest(tmp_path / str(rank))}

    until(lambda: readers() and all((tmp_path / str(rank)).exists() for rank in ranks), 60)
    first = readers()
    assert len(first) == 1
    for rank in first:
        ranks[rank].send_signal(signal.SIGKILL)
    until(lambda: readers() - first, 60)
    assert len(readers() - first) == 1


def test_the_process_with_the_loop_reads_as_long_as_it_is_there(start: Start, tmp_path: Path) -> None:
    launched, looping = tmp_path / "launcher", tmp_path / "loop"
    start(LAUNCHER, launched.name, RLOTEL_RUN_ID="r")
    until(lambda: latest(launched), 60)
    loop = start(LOOP, looping.name, RLOTEL_RUN_ID="r", RLOTEL_ATTEMPT="a")
    until(lambda: latest(looping) > latest(launched) + 3e9, 60)
    loop.communicate()
    until(lambda: latest(launched) > latest(looping), 60)


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

        rlotel.instrument(run_id="r", export_interval=0.1).flush()
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
