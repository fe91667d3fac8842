"""The example: a trainer that knows nothing of rlotel, followed and imported."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from rlotel import capture
from rlotel.capture import Capture
from rlotel.conformance import check
from tests.cli.conftest import command, environment, rlotel

__all__ = ["command", "environment", "rlotel"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "adapter"
Rlotel = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def trained(environment: dict[str, str], tmp_path: Path) -> Capture:
    """What the example's run sent."""
    subprocess.run(
        [sys.executable, str(EXAMPLE / "train.py")], cwd=tmp_path, env=environment, check=True, timeout=60
    )
    return capture.read(tmp_path / "capture.jsonl")


def latest(seen: Capture) -> dict[str, float | None]:
    """The last values of what is not measured, and so must be the same each time."""
    names = (
        "rl.environment.reward.mean",
        "rl.environment.episode.length.mean",
        "rl.sample.episodes",
        "rl.sample.steps",
        "rl.train.loss",
        "rl.evaluation.score",
    )
    return {name: point.value for name in names for point in seen.latest(name)}


def test_it_is_followed(trained: Capture, tmp_path: Path) -> None:
    logged = [json.loads(line) for line in (tmp_path / "corridor.jsonl").read_text().splitlines()]
    training = [line for line in logged if "rollout/return" in line]
    assert latest(trained) == {
        "rl.environment.reward.mean": training[-1]["rollout/return"],
        "rl.environment.episode.length.mean": training[-1]["rollout/length"],
        "rl.sample.episodes": sum(line["rollout/episodes"] for line in training),
        "rl.sample.steps": training[-1]["env_steps"] - training[0]["env_steps"],
        "rl.train.loss": training[-1]["learner/pg_loss"],
        "rl.evaluation.score": logged[-1]["eval/return"],
    }
    for name, key in (("rl.sample.duration", "time/rollout_ms"), ("rl.train.duration", "time/update_ms")):
        (duration,) = trained.latest(name)
        assert duration.sum == pytest.approx(sum(line[key] for line in training) / 1000)
        assert duration.count == len(training)
    assert [span.attributes["rl.loop.iteration"] for span in trained.spans("rl.loop")] == [1, 2, 3, 4, 5, 6, 7]
    with (tmp_path / "capture.jsonl").open() as lines:
        assert check(lines) == []


def test_what_it_wrote_is_imported_as_the_same(trained: Capture, tmp_path: Path, rlotel: Rlotel) -> None:
    result = rlotel("import", "corridor.jsonl", "--table", str(EXAMPLE / "table.yaml"), "--capture", "imported")
    assert result.returncode == 0, result.stderr
    assert latest(capture.read(tmp_path / "imported")) == latest(trained)


def test_both_tables_say_the_same() -> None:
    keys = yaml.safe_load((EXAMPLE / "table.yaml").read_text())["keys"]
    script = (EXAMPLE / "train.py").read_text()
    assert [key for key in keys if f'"{key}":' not in script] == []
