"""What fails is an error span, and goes on to the user unchanged."""

from pathlib import Path

import pytest

from tests.frameworks.running import Run, phase
from tests.frameworks.skrl.conftest import ENVS, ROWS, STEPS, UPDATES, train

BROKEN = "__main__.Broken"


def failed(run: Run, where: str) -> None:
    assert "raised Broken: a secret" in run.output
    assert "a secret" not in "\n".join(run.lines)
    bad = run.loops[-1]
    assert bad.span.status_code == "error"
    assert bad.span.attributes["error.type"] == BROKEN
    assert [phase(node.span) for node in bad.children if node.span.status_code == "error"] == [where]
    assert run.total("rl.phase.failures", **{"rl.phase.name": where}) == 1
    assert run.observations(f"rl.{where}.duration", **{"error.type": BROKEN}) == 1
    assert run.total("rlotel.errors") == 0


@pytest.mark.parametrize("kind", ["ppo", "step"])
@pytest.mark.parametrize(("fails", "where"), [("step", "sample"), ("update", "train")])
def test_a_failure_fails_its_phase_and_its_iteration(tmp_path: Path, kind: str, fails: str, where: str) -> None:
    run = train(tmp_path, kind, FAIL=fails)
    failed(run, where)
    assert [root.span.status_code for root in run.loops] == ["unset", "error"]
    assert run.total("rl.sample.steps") == (ROWS + 4 * ENVS if fails == "step" else 2 * ROWS)
    assert run.total("rl.train.steps") == (UPDATES if fails == "step" else UPDATES + 2)


def test_a_failure_in_rounds_that_are_gathered_is_one_as_well(tmp_path: Path) -> None:
    run = train(tmp_path, "dqn", 100, FAIL="step")
    failed(run, "sample")
    assert run.total("rl.sample.steps") == (STEPS + 4) * ENVS
