"""Ranks that were launched together know each other, and rank 0 speaks for all."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from rlotel import gang
from rlotel.identity import attempt
from rlotel.testing import captured

PROGRAM = """
import json, os, rlotel
session = rlotel.instrument(gpu=False, frameworks=[], endpoint="http://127.0.0.1:1")
print(json.dumps([session.run_id, session.process.attempt, session.process.rank, session.process.launcher]))
os._exit(0)
"""


def ranks(count: int, **environ: str) -> Iterator[list[object]]:
    """What each of some ranks takes itself for."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("RLOTEL_", "OTEL_"))}
    for rank in range(count):
        variables = {"RANK": str(rank), "WORLD_SIZE": str(count), **environ}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**own, **variables}, capture_output=True, text=True, check=True
        )
        yield json.loads(done.stdout)


ONE_NODE = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "LOCAL_WORLD_SIZE": "2"}


@pytest.mark.parametrize("given", [{}, {"TORCHELASTIC_RUN_ID": "none"}, {"TORCHELASTIC_RUN_ID": "job-1"}])
def test_ranks_are_one_run_in_one_launch_of_which_rank_0_is_the_launcher(given: dict[str, str]) -> None:
    (run, attempt, *first), (other_run, other_attempt, *second) = ranks(2, **ONE_NODE, **given)
    assert (run, attempt) == (other_run, other_attempt)
    assert first == [0, True]
    assert second == [1, False]


def test_a_launch_that_is_restarted_is_another_one() -> None:
    ((run, attempt, *_), _) = ranks(2, **ONE_NODE, TORCHELASTIC_RUN_ID="job-1")
    ((again, other, *_), _) = ranks(2, **ONE_NODE, TORCHELASTIC_RUN_ID="job-1", TORCHELASTIC_RESTART_COUNT="1")
    assert run == again == "job-1"
    assert attempt != other


def test_what_the_scheduler_calls_the_job_is_believed_before_torchrun() -> None:
    ((run, *_), _) = ranks(2, **ONE_NODE, TORCHELASTIC_RUN_ID="torchrun", SLURM_JOB_ID="4711")
    assert run == "4711"


def test_on_several_nodes_the_rendezvous_names_them() -> None:
    node = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}
    assert gang.name({**node, "RANK": "0"}) == gang.name({**node, "RANK": "9"})
    assert gang.name({**node, "RANK": "0"}) not in (None, gang.name({**node, "RANK": "0", "MASTER_PORT": "29501"}))


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"RANK": "0", "WORLD_SIZE": "1"},
        {"WORLD_SIZE": "2"},
        {"RANK": ""},
        {"RANK": "3"},  # as a scheduler sets it, or a shell has kept it
        {"RANK": "3", "WORLD_SIZE": ""},
    ],
)
def test_a_process_alone_is_rank_0_and_has_no_name(environ: dict[str, str]) -> None:
    assert gang.name(environ) is None
    assert gang.rank(environ) == 0


@pytest.mark.parametrize("text", ["first", "-1", "1.0", "²", "9" * 5000])
def test_variables_that_are_no_numbers_are_no_ranks(text: str) -> None:
    assert gang.rank({"RANK": text, "WORLD_SIZE": "2"}) == 0
    assert gang.name({"RANK": "0", "WORLD_SIZE": text}) is None
    assert attempt({"TORCHELASTIC_RESTART_COUNT": text, "SLURM_RESTART_COUNT": "2"}) == 2


def test_a_rank_that_is_none_of_the_first_does_not_speak_for_the_run() -> None:
    with captured({"RANK": "1", "WORLD_SIZE": "2"}) as telemetry:
        assert telemetry.points("rl.run.status") == []
        assert telemetry.session.process.worker
