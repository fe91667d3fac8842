"""What `docs/adding-a-trainer.md` shows works as it stands: its trainers, followed by their integrations."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlotel.testing import Telemetry, captured

PAGE = Path(__file__).parents[1] / "docs" / "adding-a-trainer.md"
BLOCK = re.compile(r"^```python\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

TRAINERS, INTEGRATIONS = ("trainer", "stepwise"), ("tinyrl", "stepwise")


def coin() -> float:
    """An environment whose episodes are a toss each."""
    return 0.25


@pytest.fixture
def tinyrl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The trainer of that page, followed by the integration of that page."""
    files = dict(BLOCK.findall(PAGE.read_text()))
    package = tmp_path / "tinyrl"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '1.0'\n")
    for name in TRAINERS:
        (package / f"{name}.py").write_text(files[f"tinyrl/{name}.py"])
    for name in INTEGRATIONS:
        (tmp_path / f"{name}_integration.py").write_text(files[f"rlotel/integrations/{name}.py"])
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("tinyrl.trainer")
    loaded = [f"tinyrl.{name}" for name in TRAINERS] + [f"{name}_integration" for name in INTEGRATIONS]
    for module in ("tinyrl", *loaded):
        sys.modules.pop(module, None)


@pytest.fixture
def telemetry(tinyrl: Any) -> Iterator[Telemetry]:
    with captured(frameworks=()) as telemetry:
        session = telemetry.session
        for name in INTEGRATIONS:
            importlib.import_module(f"{name}_integration").connect(session.patches, session.recorder)
        yield telemetry


def test_its_iterations_are_traces_and_its_evaluations_no_part_of_them(tinyrl: Any, telemetry: Telemetry) -> None:
    tinyrl.Trainer(coin, 3).fit()
    phases = ["rl.sample", "rl.train", "rl.loop"]
    evaluated = ["rl.sample", "rl.train", "rl.phase", "rl.checkpoint", "rl.loop"]
    assert [span.name for span in telemetry.spans()] == phases + evaluated + phases
    assert telemetry.value("rl.sample.episodes") == 24
    assert telemetry.value("rl.entropy") == 1.2
    assert telemetry.value("rl.environment.reward.mean") == 0.25
    assert telemetry.value("rl.evaluation.score", **{"rl.evaluation.name": "return"}) == 0.25
    assert telemetry.value("rl.checkpoint.step") == 2
    (point,) = telemetry.points("rl.train.loss")
    assert {key: point.attributes[key] for key in ("rl.system", "rl.environment.name")} == {
        "rl.system": "tinyrl",
        "rl.environment.name": "coin",
    }


def test_an_environment_that_fails_is_an_error_span_and_passes_through(tinyrl: Any, telemetry: Telemetry) -> None:
    def broken() -> float:
        raise RuntimeError("fell over")

    with pytest.raises(RuntimeError, match="fell over"):
        tinyrl.Trainer(broken, 3).fit()
    assert [(span.name, span.status_code) for span in telemetry.spans()] == [
        ("rl.sample", "error"),
        ("rl.loop", "error"),
    ]


class Lever:
    """An environment of which a step takes some time."""

    def __init__(self, telemetry: Telemetry, breaks_at: int = 0) -> None:
        self.telemetry, self.breaks_at, self.steps = telemetry, breaks_at, 0

    def step(self) -> float:
        self.steps += 1
        if self.steps == self.breaks_at:
            raise RuntimeError("fell over")
        self.telemetry.clock.advance(0.05)
        return 0.25


def stepwise(telemetry: Telemetry, rollout: int, env: Lever) -> Any:
    """A trainer whose agent updates itself after so many steps, which takes some time as well."""
    module = importlib.import_module("tinyrl.stepwise")

    class Own(module.Agent):  # type: ignore[misc,name-defined]
        def update(self) -> None:
            telemetry.clock.advance(0.03)

    return module.Trainer(Own(rollout), env)


@pytest.mark.usefixtures("tinyrl")
def test_a_rollout_that_is_no_function_is_a_phase(telemetry: Telemetry) -> None:
    stepwise(telemetry, 8, Lever(telemetry)).fit(16)
    assert [span.name for span in telemetry.spans()] == ["rl.sample", "rl.train", "rl.loop"] * 2
    assert telemetry.value("rl.sample.duration") == pytest.approx(16 * 0.05)
    assert telemetry.value("rl.train.duration") == pytest.approx(2 * 0.03)
    assert telemetry.value("rl.sample.steps") == 16


@pytest.mark.usefixtures("tinyrl")
def test_an_update_after_each_step_is_no_iteration_of_its_own(telemetry: Telemetry) -> None:
    stepwise(telemetry, 1, Lever(telemetry)).fit(26)
    assert [span.name for span in telemetry.spans()] == ["rl.sample", "rl.train", "rl.loop"] * 2
    assert telemetry.value("rl.train.duration") == pytest.approx(26 * 0.03)
    assert telemetry.value("rl.sample.steps") == 26


@pytest.mark.usefixtures("tinyrl")
def test_a_step_that_fails_is_an_error_span_of_its_rollout(telemetry: Telemetry) -> None:
    with pytest.raises(RuntimeError, match="fell over"):
        stepwise(telemetry, 8, Lever(telemetry, breaks_at=3)).fit(16)
    assert [(span.name, span.status_code) for span in telemetry.spans()] == [
        ("rl.sample", "error"),
        ("rl.loop", "error"),
    ]
    assert telemetry.value("rl.sample.steps") == 2
