"""The sandbox: what an answer is worth, how it is locked down, and that it neither hangs nor lingers."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlotel.demo.sandbox import Sandbox, SandboxError, SandboxTimeout

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

RIGHT, WRONG = ("3+4=", "7."), ("3+4=", "8.")


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def running(sandbox: Sandbox) -> int:
    """The process of a sandbox that has scored a batch."""
    assert sandbox.score([RIGHT]).tolist() == [1.0]
    assert sandbox.pid is not None
    return sandbox.pid


def is_there(pid: int) -> bool:
    """Whether the process exists, a zombie included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize(
    ("prompt", "completion", "reward"),
    [
        ("3+4=", "7.", 1.0),
        ("9+9=", "18.", 1.0),
        ("9-2=", "7.", 1.0),
        ("5-5=", "0.", 1.0),
        ("3+4=", "8.", 0.1),
        ("3+4=", "07.", 0.1),
        ("9+9=", "1.", 0.1),
        ("3+4=", "7", 0.0),
        ("3+4=", "7..", 0.0),
        ("3+4=", "7.\n", 0.0),
        ("3+4=", "123.", 0.0),
        ("3+4=", ".", 0.0),
        ("3+4=", "", 0.0),
        ("3+4=", "3+4.", 0.0),
        ("3+4=", "٧.", 0.0),
        ("3+4=", "\ud800", 0.0),
        ("3*4=", "12.", 0.0),
    ],
)
def test_an_answer_is_worth(shared: Sandbox, prompt: str, completion: str, reward: float) -> None:
    assert shared.score([(prompt, completion)]).tolist() == [reward]


@given(left=st.integers(0, 9), right=st.integers(0, 9), answer=st.integers(0, 99))
def test_exactly_the_right_number_is_worth_one(shared: Sandbox, left: int, right: int, answer: int) -> None:
    rewards = shared.score([(f"{left}+{right}=", f"{answer}."), (f"{left}-{right}=", f"{answer}.")])
    assert rewards.tolist() == [1.0 if answer == right_one else 0.1 for right_one in (left + right, left - right)]


@given(st.lists(st.tuples(st.text(), st.text())))
def test_whatever_the_text_every_answer_gets_a_reward(shared: Sandbox, answers: list[tuple[str, str]]) -> None:
    assert shared.score(answers).shape == (len(answers),)


def test_a_batch_larger_than_the_pipe_goes_through(shared: Sandbox) -> None:
    rewards = shared.score([RIGHT, WRONG] * 50_000)
    assert rewards.tolist() == [1.0, 0.1] * 50_000


def test_one_process_serves_many_batches() -> None:
    with Sandbox() as sandbox:
        pids = {running(sandbox) for _ in range(5)}
        assert (len(pids), sandbox.restarts) == (1, 0)


@linux
def test_the_process_is_isolated_and_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "secret")
    with Sandbox() as sandbox:
        process = Path("/proc") / str(running(sandbox))
        arguments = (process / "cmdline").read_text().split("\0")
        environment = (process / "environ").read_text()
        limits = {
            line[:25].strip(): line[25:].split()[0] for line in (process / "limits").read_text().splitlines()[1:]
        }
    assert arguments[1:3] == ["-I", "-S"]
    assert "secret" not in environment
    names = ("Max open files", "Max file size", "Max processes", "Max core file size", "Max address space")
    assert [limits[name] for name in names] == ["0", "0", "0", "0", str(256 * 1024**2)]
    assert int(limits["Max cpu time"]) <= 10


def test_a_process_that_died_is_replaced_and_the_batch_is_scored() -> None:
    with Sandbox() as sandbox:
        first = running(sandbox)
        os.kill(first, signal.SIGKILL)
        assert sandbox.score([RIGHT, WRONG]).tolist() == [1.0, 0.1]
        assert (sandbox.restarts, sandbox.pid == first, is_there(first)) == (1, False, False)


def test_a_process_that_hangs_is_a_timeout_and_the_next_batch_gets_a_new_one() -> None:
    with Sandbox(timeout=30.0) as sandbox:
        first = running(sandbox)
        os.kill(first, signal.SIGSTOP)
        sandbox.timeout = 0.2
        # More than a pipe holds, so that sending stands still too.
        with pytest.raises(SandboxTimeout, match=r"no rewards within 0\.2 s: give Sandbox a longer timeout"):
            sandbox.score([RIGHT] * 50_000)
        assert (sandbox.pid, is_there(first)) == (None, False)
        sandbox.timeout = 30.0
        assert sandbox.score([RIGHT]).tolist() == [1.0]
        assert sandbox.restarts == 1


def program(folder: Path, body: str) -> str:
    """An interpreter that does something else."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_a_process_that_always_dies_is_an_error_that_says_how_to_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", program(tmp_path, "exit 1"))
    with Sandbox() as sandbox, pytest.raises(SandboxError, match="died twice over one batch of 1 answers: run"):
        sandbox.score([RIGHT])


@pytest.mark.parametrize(
    "reply", ["hello", "[]", "{}", '{"rewards": "x"}', '{"rewards": [2.0]}', '{"rewards": []}']
)
def test_a_reply_that_is_no_reward_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reply: str
) -> None:
    monkeypatch.setattr(sys, "executable", program(tmp_path, f"read line; echo '{reply}'"))
    with (
        Sandbox() as sandbox,
        pytest.raises(SandboxError, match=r"the verifying process sent .*other"),
    ):
        sandbox.score([RIGHT])


def test_a_closed_sandbox_leaves_no_process_and_scores_no_more() -> None:
    sandbox = Sandbox()
    pid = running(sandbox)
    sandbox.close()
    sandbox.close()
    assert (is_there(pid), sandbox.pid) == (False, None)
    with pytest.raises(SandboxError, match="closed: make a new one"):
        sandbox.score([RIGHT])


def test_a_forgotten_sandbox_is_stopped_when_it_is_collected() -> None:
    sandbox = Sandbox()
    pid = running(sandbox)
    del sandbox
    assert wait_until(lambda: not is_there(pid))


FORGETFUL = """
import json, sys
from rlotel.demo.sandbox import Sandbox
sandbox = Sandbox()
sandbox.score([("3+4=", "7.")])
print(json.dumps(sandbox.pid), flush=True)
sys.stdin.readline()
"""


def test_a_program_that_forgets_its_sandbox_still_exits_in_silence() -> None:
    command = [sys.executable, "-W", "error", "-c", FORGETFUL]
    finished = subprocess.run(command, input="\n", capture_output=True, text=True, timeout=60, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert not is_there(json.loads(finished.stdout))


@linux
def test_the_process_ends_when_its_program_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORGETFUL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as trainer:
        assert trainer.stdout is not None
        pid = json.loads(trainer.stdout.readline())
        assert is_there(pid)
        trainer.kill()

    def is_gone() -> bool:
        # Whoever adopted it may not collect it; a zombie runs no more.
        status = Path(f"/proc/{pid}/stat")
        return not is_there(pid) or status.read_text().rpartition(")")[2].split()[0] == "Z"

    assert wait_until(is_gone)
