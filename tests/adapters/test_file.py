"""A file of JSON lines that something else writes is followed as it grows."""

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import rlotel
from rlotel.adapters import each, follow, seconds
from rlotel.capture import read
from rlotel.logged.lines import LONGEST
from rlotel.testing import Telemetry
from tests.conftest import Program

REWARD = "rl.environment.reward.mean"


def until(condition: Callable[[], bool]) -> None:
    """Look until it is so, for 20 s at most."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        threading.Event().wait(0.01)


def append(path: Path, *lines: object) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def test_lines_are_taken_as_they_come(telemetry: Telemetry, path: Path) -> None:
    log = follow(path, {"reward": REWARD, "n": each("rl.sample.episodes")})
    append(path, {"step": 1, "reward": 0.5, "n": 2, "lr": 1e-4})  # the file comes into being
    until(lambda: telemetry.value(REWARD) == 0.5)
    append(path, {"step": 2, "reward": 0.75, "n": 3})
    until(lambda: telemetry.value(REWARD) == 0.75)
    assert log.unmapped == ["lr"]
    log.finish()
    assert telemetry.value("rl.sample.episodes") == 5
    assert [span.attributes["rl.loop.iteration"] for span in telemetry.spans("rl.loop")] == [2]


def test_what_was_in_the_file_before_is_of_another_run(telemetry: Telemetry, path: Path) -> None:
    append(path, {"step": 1, "n": 100})
    log = follow(str(path), {"n": each("rl.sample.episodes")})
    append(path, {"step": 2, "n": 1})
    log.finish()
    assert telemetry.value("rl.sample.episodes") == 1


def test_half_a_line_is_waited_for(telemetry: Telemetry, path: Path) -> None:
    log = follow(path, {"reward": REWARD})
    with path.open("a") as file:
        file.write('{"reward": 0.')
        file.flush()
        log.drain()
        assert telemetry.points(REWARD) == []
        file.write("25}\n")
    until(lambda: telemetry.value(REWARD) == 0.25)


def test_the_last_line_needs_no_end(telemetry: Telemetry, path: Path) -> None:
    log = follow(path, {"reward": REWARD})
    path.write_text('{"reward": 0.25}')
    log.finish()
    assert telemetry.value(REWARD) == 0.25


def test_a_file_that_is_begun_anew_is_read_from_its_beginning(telemetry: Telemetry, path: Path) -> None:
    log = follow(path, {"n": each("rl.sample.episodes")})
    append(path, *({"step": step, "n": 1, "text": "long enough"} for step in range(3)))
    log.finish()
    path.write_text('{"step": 3, "n": 10}\n')
    log.finish()
    other = path.with_suffix(".new")
    append(other, *({"step": 4 + step, "n": 100, "text": "long enough"} for step in range(9)))
    os.replace(other, path)  # noqa: PTH105 - as log rotation does
    log.finish()
    assert telemetry.value("rl.sample.episodes") == 913


def test_what_was_written_just_before_a_rotation_is_taken(telemetry: Telemetry, path: Path) -> None:
    log = follow(path, {"n": each("rl.sample.episodes")})
    append(path, {"step": 1, "n": 1})
    log.finish()
    append(path, {"step": 2, "n": 10})
    with path.open("a") as file:
        file.write('{"step": 3, "n": 100}')
    path.rename(path.with_suffix(".1"))
    append(path, {"step": 4, "n": 1000})
    log.finish()
    assert telemetry.value("rl.sample.episodes") == 1111


def test_following_again_reads_it_once(telemetry: Telemetry, path: Path) -> None:
    for _ in range(3):
        log = follow(path, {"n": each("rl.sample.episodes")})
    assert len([thread for thread in threading.enumerate() if thread.name == "rlotel-file"]) <= 3
    append(path, {"step": 1, "n": 1}, "no object", {"step": 2, "n": 1})
    log.finish()
    until(lambda: len([thread for thread in threading.enumerate() if thread.name == "rlotel-file"]) == 1)
    assert telemetry.value("rl.sample.episodes") == 2
    assert telemetry.value("rlotel.values.refused", **{"rlotel.refusal.reason": "text"}) == 1


def test_a_forked_child_leaves_the_file_to_its_parent(program: Program, tmp_path: Path) -> None:
    program(
        """
        import json, os, threading
        import rlotel
        from rlotel.adapters import each, follow
        rlotel.instrument(gpu=False, system="nobodys")
        log = follow("metrics.jsonl", {"n": each("rl.sample.episodes")})
        with open("metrics.jsonl", "w") as file:
            file.write('{"step": 1, "n": 1}\\n')
        held, fork = threading.Event(), threading.Event()
        def reads():
            with log.drain.__self__._lock:  # as it is while the thread reads
                held.set()
                fork.wait()
        threading.Thread(target=reads).start()
        held.wait()
        child = os.fork()
        if child == 0:
            log.finish()
            rlotel.uninstrument()
            os._exit(0)
        fork.set()
        assert os.waitpid(child, 0)[1] == 0
        """,
        RLOTEL_CAPTURE="fork.jsonl",
    )
    (episodes,) = read(tmp_path / "fork.jsonl").latest("rl.sample.episodes")
    assert episodes.value == 1


def test_lines_that_are_none_are_counted_and_left_out(telemetry: Telemetry, path: Path) -> None:
    log = follow(path, {"reward": REWARD})
    too_long = b'{"x": "%s"}' % (b"y" * (2 * LONGEST))
    path.write_bytes(
        b"\n".join([b"", b'{"reward": 1', b"[1]", b"\xff\xfe", too_long, b'{"reward": NaN}', b'{"reward": 2}'])
    )
    log.finish()
    assert telemetry.value(REWARD) == 2
    assert telemetry.value("rlotel.values.refused", **{"rlotel.refusal.reason": "text"}) == 4
    assert telemetry.value("rl.train.nonfinite", **{"rl.value.name": REWARD, "rl.value.kind": "nan"}) == 1


def test_a_line_may_say_when_it_was_written(telemetry: Telemetry, path: Path) -> None:
    telemetry.clock.advance(1000)
    log = follow(path, {"t": seconds("train"), "reward": REWARD}, time="at")
    now = time.time()
    append(path, *({"at": now - 100 + 10 * step, "reward": step, "t": 4} for step in range(3)))
    log.finish()
    (loops,) = telemetry.points("rl.loop.duration")
    assert loops.count == 2
    assert loops.sum == pytest.approx(20.0)


def test_nothing_is_read_once_it_is_let_go_of(telemetry: Telemetry, path: Path) -> None:
    log = follow(path, {"t": seconds("loop")})
    append(path, {"step": 1, "t": 0.5})
    rlotel.uninstrument()
    assert len(telemetry.spans("rl.loop")) == 1  # what was there is taken
    append(path, {"step": 2, "t": 0.5})
    log.finish()
    until(lambda: not any(thread.name == "rlotel-file" for thread in threading.enumerate()))
    assert len(telemetry.spans("rl.loop")) == 1
