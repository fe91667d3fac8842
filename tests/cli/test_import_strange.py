"""`rlotel import` of what is strange: lines out of order, in mappings, without what others have."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rlotel.capture import Capture
from tests.cli.test_import import Rlotel, kept, lines, rlotel, table
from tests.importing.record import BEGAN

__all__ = ["kept", "rlotel", "table"]


def test_a_run_of_evaluations_alone_is_a_run(
    rlotel: Rlotel, table: str, tmp_path: Path, kept: Callable[[], Capture]
) -> None:
    scores = [{"timestamp": BEGAN + 10 * step, "eval/score": step} for step in range(3)]
    (tmp_path / "eval.jsonl").write_text("".join(json.dumps(line) + "\n" for line in scores))
    assert rlotel("import", "eval.jsonl", "--table", table).returncode == 0
    assert [point.value for point in kept().latest("rl.evaluation.score")] == [2]


def test_lines_that_go_back_in_time_are_no_error(
    rlotel: Rlotel, table: str, tmp_path: Path, kept: Callable[[], Capture]
) -> None:
    times = (0, 10, 5, 20, 30)
    logged = [{"timestamp": BEGAN + at, "step": step, "train/reward": 1} for step, at in enumerate(times)]
    (tmp_path / "back.jsonl").write_text("".join(json.dumps(line) + "\n" for line in logged))
    result = rlotel("import", "back.jsonl", "--table", table)
    assert (result.returncode, result.stderr) == (0, "")
    (loops,) = kept().latest("rl.loop.duration")
    assert (loops.count, loops.sum) == (3, 35.0)


STRANGE = {
    "in the future": ({"timestamp": 4_102_444_800, "step": 99}, "1 lines are of the future, and are left out\n"),
    "never": ({"timestamp": 1e300}, "1 lines have no time, and are left out\n"),
    "before 1970": ({"timestamp": "1960-01-01T00:00:00Z"}, "1 lines have no time, and are left out\n"),
    "too long": ({"timestamp": BEGAN + 25, "step": 99, "time/update": 1e12}, ""),
}
"""A line in the middle of a run, and what is said of it."""


@pytest.mark.parametrize("strange", STRANGE)
def test_one_line_that_is_strange_does_not_cost_the_others(
    rlotel: Rlotel, table: str, tmp_path: Path, kept: Callable[[], Capture], strange: str
) -> None:
    line, said = STRANGE[strange]
    lines(tmp_path / "run.jsonl", BEGAN, steps=5)
    first, second, *rest = (tmp_path / "run.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "run.jsonl").write_text("".join([first, second, json.dumps(line) + "\n", *rest]))
    result = rlotel("import", "run.jsonl", "--table", table)
    assert (result.returncode, result.stderr) == (0, said)
    rewards = kept().points("rl.environment.reward.mean")
    assert {(p.time_ns, p.value) for p in rewards} >= {
        (round((BEGAN + 10 * step) * 1e9), step / 8) for step in range(1, 6)
    }
    assert min(span.start_ns for span in kept().spans()) >= BEGAN * 1e9


def test_what_is_logged_in_mappings_is_said_by_its_whole_key(rlotel: Rlotel, table: str, tmp_path: Path) -> None:
    lines(tmp_path / "ppo.jsonl", BEGAN, env={"ret": 1, "other": 2})
    Path(table).write_text("keys: {env.ret: rl.entropy}")
    result = rlotel("import", "ppo.jsonl", "--table", table, "--dry-run")
    assert "  env.ret: rl.entropy, 6 times\n" in result.stdout
    assert "env.other" in result.stdout


def test_what_is_in_a_file_gives_the_terminal_no_orders(rlotel: Rlotel, table: str, tmp_path: Path) -> None:
    lines(tmp_path / "ppo.jsonl", BEGAN, **{"\x1b[31mred": 1, "two\nlines": 2, "half\ud800": 3})
    result = rlotel("import", "ppo.jsonl", "--table", table)
    assert (result.returncode, result.stderr) == (0, "")
    assert "not in the table: �[31mred, two�lines, half�\n" in result.stdout


def test_files_of_the_same_name_are_runs_of_their_own(
    rlotel: Rlotel, table: str, tmp_path: Path, kept: Callable[[], Capture]
) -> None:
    for number in (1, 2):
        (tmp_path / f"runs/ppo-{number}").mkdir(parents=True)
        lines(tmp_path / f"runs/ppo-{number}/metrics.jsonl", BEGAN)
    assert rlotel("import", "runs", "--table", table).returncode == 0
    runs = {str(point.attributes["rl.run.id"]) for point in kept().points("rl.train.loss")}
    assert runs == {"ppo-1/metrics", "ppo-2/metrics"}
