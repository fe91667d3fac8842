"""What fails is an error span, and goes on to the user unchanged."""

from pathlib import Path

import pytest

from tests.frameworks.rsl_rl.conftest import ENVS, INSTALLED, STEPS, UPDATES, train
from tests.frameworks.running import phase

BROKEN = "__main__.Broken"


@pytest.mark.parametrize(("fails", "where"), [("step", "sample"), ("optimizer", "train")])
@pytest.mark.parametrize("version", [INSTALLED, "3.0.1"])
def test_a_failure_fails_its_phase_and_its_iteration(tmp_path: Path, fails: str, where: str, version: str) -> None:
    run = train(tmp_path, version, FAIL=fails)
    assert "raised Broken: a secret" in run.output
    assert "a secret" not in "\n".join(run.lines)
    good, bad = run.loops
    assert {node.span.status_code for node in (good, *good.children)} == {"unset"}
    assert bad.span.status_code == "error"
    assert bad.span.attributes["error.type"] == BROKEN
    failed = [phase(node.span) for node in bad.children if node.span.attributes.get("error.type") == BROKEN]
    assert failed == [where]
    assert run.total("rl.phase.failures", **{"rl.phase.name": where}) == 1
    assert run.observations(f"rl.{where}.duration", **{"error.type": BROKEN}) == 1
    assert run.total("rlotel.errors") == 0


def test_what_was_done_before_a_failure_is_counted(tmp_path: Path) -> None:
    run = train(tmp_path, FAIL="step")
    assert run.total("rl.sample.steps") == ENVS * (STEPS + 3)
    run = train(tmp_path / "optimizer", FAIL="optimizer")
    assert run.total("rl.train.steps") == UPDATES + 2
