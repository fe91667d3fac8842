"""A worker of NeMo RL has a locked environment of its own, in which rlotel is not installed.

A folder that `pip install --target` has filled stands beside it, and the environment of the driver, which NeMo RL
hands to all its workers, has the autostart folder in it on `PYTHONPATH`.
"""

import os
import subprocess
import sysconfig
import textwrap
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlotel
from rlotel.receiver import Receiver

from .conftest import HERE

PROGRAM = """
    import importlib.util, json, sys
    from nemo_rl.algorithms.grpo import grpo_train
    from nemo_rl.utils.logger import Logger
    from nemo_rl.utils.timer import Timer
    from nemo_rl import script

    def body(name, arguments):
        timer, logger = Timer(), Logger({})
        for step in (1, 2):
            with timer.time("total_step_time"), timer.time("policy_training"):
                pass
            logger.log_metrics({"loss": 0.25}, step, "train")
            logger.log_metrics(timer.get_timing_metrics("sum"), step, "timing/train")
            timer.reset()

    script.run = body
    grpo_train(*[None] * 11, {"policy": {"model_name": "Qwen/Qwen3-0.6B"}})
    print(sys.modules["rlotel"].__file__ if "rlotel" in sys.modules else "no rlotel")
"""


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment with nothing in it."""
    folder = tmp_path_factory.mktemp("locked")
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / "bin" / "python")


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install --target` makes."""
    folder = tmp_path_factory.mktemp("beside")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if entry.suffix != ".pth" and "rlotel" not in entry.name:
            (folder / entry.name).symlink_to(entry)
    (folder / "rlotel").symlink_to(Path(rlotel.__file__).parent)
    return folder


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def work(python: str, receiver: Receiver, *path: str) -> "subprocess.CompletedProcess[str]":
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "RLOTEL_"))}
    return subprocess.run(
        [python, "-c", textwrap.dedent(PROGRAM)],
        env={
            **environ,
            "PYTHONPATH": os.pathsep.join([*path, str(HERE / "standins")]),
            "RLOTEL_ENABLED": "true",
            "RLOTEL_ENDPOINT": receiver.http_endpoint,
            "RLOTEL_RUN_ID": "locked",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


def test_an_environment_without_rlotel_is_reached_by_the_path(
    locked: str, beside: Path, receiver: Receiver
) -> None:
    done = work(locked, receiver, str(beside / "rlotel" / "autostart"))
    assert done.stdout.startswith(str(beside)), done.stderr
    capture = receiver.capture
    assert [span.attributes["rl.loop.iteration"] for span in capture.spans("rl.loop")] == [1, 2]
    (loss,) = capture.latest("rl.train.loss")
    assert (loss.value, loss.attributes["rl.run.id"], loss.attributes["rl.model.name"]) == (
        0.25,
        "locked",
        "Qwen/Qwen3-0.6B",
    )


def test_a_worker_that_finds_no_rlotel_works(locked: str, tmp_path: Path, receiver: Receiver) -> None:
    """The folder is not mounted on its node."""
    done = work(locked, receiver, str(tmp_path / "not" / "mounted"))
    assert done.stdout == "no rlotel\n"
