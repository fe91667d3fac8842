"""What `docs/adding-a-trainer.md` shows works as it stands: its trainer, followed by its integration."""

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
    (package / "trainer.py").write_text(files["tinyrl/trainer.py"])
    (tmp_path / "tinyrl_integration.py").write_text(files["rlotel/integrations/tinyrl.py"])
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("tinyrl.trainer")
    for name in ("tinyrl", "tinyrl.trainer", "tinyrl_integration"):
        sys.modules.pop(name, None)


@pytest.fixture
def telemetry(tinyrl: Any) -> Iterator[Telemetry]:
    with captured(frameworks=()) as telemetry:
        session = telemetry.session
        importlib.import_module("tinyrl_integration").connect(session.patches, session.recorder)
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
