"""Ranks that a launcher starts, or that a program forks: the first of them has the loop."""

import sys
from pathlib import Path

from tests.frameworks.running import run
from tests.frameworks.trl.conftest import DISTRIBUTED, PROGRAMS, ROWS, Train

OWNED = ("rl.loop.duration", "rl.worker.duration")


def test_the_launcher_of_ranks_leaves_the_loop_to_the_first_of_them(tmp_path: Path) -> None:
    command = ["-c", "from rlotel.cli import main; main()", "run", "--", sys.executable, *DISTRIBUTED]
    seen = run([*command, str(PROGRAMS / "launched.py")], tmp_path)
    assert [root.span.attributes["rl.loop.iteration"] for root in seen.loops] == [1, 2]
    assert seen.total("rl.sample.samples") == 2 * 2 * 2 * ROWS
    processes = {
        name: {point.resource["process.pid"] for point in seen.capture.points(name)}
        for name in ("rl.loop.duration", "rl.progress.age", "rl.worker.duration", "rl.run.status")
    }
    assert processes["rl.progress.age"] == processes["rl.loop.duration"]
    assert [len(pids) for pids in processes.values()] == [1, 1, 1, 1]
    assert len(set.union(*processes.values())) == 3
    (completed,) = [point for point in seen.capture.latest("rl.run.status") if point.value]
    assert completed.attributes["rl.run.state"] == "completed"
    assert seen.total("rlotel.errors") == 0


def test_of_ranks_that_are_forked_the_first_reports_the_loop(train: Train) -> None:
    seen = train("forked.py")
    assert [root.span.attributes["rl.loop.iteration"] for root in seen.loops] == [1, 2]
    assert seen.total("rl.sample.samples") == 2 * 2 * 2 * ROWS
    tellers = {name: {p.resource["process.pid"] for p in seen.capture.points(name)} for name in OWNED}
    assert [len(pids) for pids in tellers.values()] == [1, 1]
    assert len(set.union(*tellers.values())) == 2
    assert seen.total("rlotel.errors") == 0
