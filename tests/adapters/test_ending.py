"""However the trainer's process ends, the iteration that it logged last arrives."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rlotel.adapters import logger
from rlotel.capture import Capture, read
from rlotel.testing import Telemetry
from tests.conftest import Program

TRAIN = """
    import time

    import rlotel
    from rlotel.adapters import logger, seconds

    rlotel.instrument(gpu=False, system="nobodys")
    log = logger({"reward": "rl.environment.reward.mean", "t": seconds("train")})
    for step in range(3):
        log({"reward": step, "t": 0.001}, step)
"""


def iterations(capture: Capture) -> list[object]:
    return [span.attributes["rl.loop.iteration"] for span in capture.spans("rl.loop")]


def seen(capture: Capture) -> tuple[list[object], float | None, float | None]:
    (reward,) = capture.latest("rl.environment.reward.mean")
    (train,) = capture.latest("rl.train.duration")
    return iterations(capture), reward.value, train.count


def test_at_its_end(program: Program, tmp_path: Path) -> None:
    program(TRAIN, RLOTEL_CAPTURE="end.jsonl")
    assert seen(read(tmp_path / "end.jsonl")) == ([1, 2], 2.0, 3)


def test_what_was_never_logged_is_said_at_its_end(program: Program) -> None:
    done = program(TRAIN.replace('"t": seconds', '"time": seconds'), RLOTEL_CAPTURE="end.jsonl")
    assert "rlotel: the trainer never logged 'time', which its table has" in done.stderr


def test_importing_rlotel_does_not_load_its_adapters(program: Program) -> None:
    program("""
        import sys
        import rlotel
        assert "rlotel.adapters" not in sys.modules and "opentelemetry.sdk" not in sys.modules
        assert rlotel.adapters.follow.__doc__
    """)


def test_by_an_exception(program: Program, tmp_path: Path) -> None:
    program(TRAIN + "\n    raise RuntimeError", check=False, RLOTEL_CAPTURE="failed.jsonl")
    capture = read(tmp_path / "failed.jsonl")
    assert seen(capture) == ([1, 2], 2.0, 3)
    assert [point.value for point in capture.latest("rl.run.status", **{"rl.run.state": "failed"})] == [1.0]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
def test_by_sigterm(tmp_path: Path) -> None:
    import textwrap

    wait = textwrap.dedent(TRAIN) + "print('logged', flush=True)\ntime.sleep(60)\n"
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "RLOTEL_"))}
    with subprocess.Popen(
        [sys.executable, "-c", wait],
        env={**environ, "RLOTEL_CAPTURE": "term.jsonl"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"logged\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == -signal.SIGTERM
    assert seen(read(tmp_path / "term.jsonl")) == ([1, 2], 2.0, 3)


def test_in_a_forked_child_the_parents_iteration_is_not_told_again(program: Program, tmp_path: Path) -> None:
    fork = """
    import os
    child = os.fork()
    if child == 0:
        log({"reward": 9, "t": 0.5}, 9)
        os._exit(0)
    os.waitpid(child, 0)
    """
    program(TRAIN + fork, RLOTEL_CAPTURE="fork.jsonl")
    assert seen(read(tmp_path / "fork.jsonl")) == ([1, 2], 2.0, 3)


def test_only_some_of_what_was_never_logged_is_said(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    log = logger({f"train/{number}": "rl.entropy" for number in range(100)})
    log({"train/0": 1.0, "train/1x": 1.0}, 1)
    log.end()
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said[0] == "rlotel: the trainer never logged 'train/1', which its table has; 'train/1x' was"
    assert said[20:] == ["rlotel: the trainer never logged 79 more keys of its table"]
