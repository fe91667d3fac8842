"""What fails is an error span, and goes on to the user unchanged."""

from pathlib import Path

import pytest

from tests.frameworks.rsl_rl.conftest import ENVS, INSTALLED, STEPS, UPDATES, train
from tests.frameworks.running import phase

BROKEN = "__main__.Broken"


@pytest.mark.parametrize(
    ("version", "fails", "where"),
    [(INSTALLED, "step", "sample"), (INSTALLED, "optimizer", "train"), ("3.0.1", "step", "sample")],
)
def test_a_failure_fails_its_phase_and_its_iteration(tmp_path: Path, version: str, fails: str, where: str) -> None:
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
    # What was done before is counted.
    assert run.total("rl.sample.steps") == ENVS * (STEPS + (3 if fails == "step" else STEPS))
    assert run.total("rl.train.steps") == UPDATES + (0 if fails == "step" else 2)
