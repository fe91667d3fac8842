"""Trainers that are made of TRL's are followed like TRL's; others, and what is done beside them, are not."""

import importlib.util
import re
from pathlib import Path

from rlotel.integrations.trl.tables import HIDDEN
from tests.frameworks.running import phase
from tests.frameworks.trl.conftest import ROWS, Train


def test_a_trainer_of_the_users_own_is_followed_alone_and_let_go(train: Train) -> None:
    run = train("subclasses.py")  # which itself makes sure that its methods are put back
    assert [root.span.attributes["rl.loop.iteration"] for root in run.loops] == [1, 2]
    for root in run.loops:
        assert [phase(node.span) for node in root.children] == ["data", "sample", "reward", "train"]
    assert run.total("rl.sample.samples") == 2 * 2 * ROWS
    assert {point.attributes["rl.algorithm"] for point in run.capture.points("rl.loop.duration")} == {"grpo"}
    assert run.total("rlotel.errors") == 0

    evaluations = [span for span in run.capture.spans() if phase(span) == "evaluate"]
    assert len(evaluations) == 1
    scores = {str(p.attributes["rl.evaluation.name"]) for p in run.capture.latest("rl.evaluation.score")}
    assert {"easy_reward", "hard_reward"} <= scores
    assert not any(name.endswith(("runtime", "per_second", "num_tokens")) for name in scores)


def test_each_algorithm_whose_phases_are_hidden_is_one_of_trl() -> None:
    spec = importlib.util.find_spec("trl")
    assert spec is not None
    assert spec.origin is not None
    sources = [path.read_text() for path in (Path(spec.origin).parent / "experimental").glob("*/*_trainer.py")]
    tags = {tag for source in sources for tag in re.findall(r'_tag_names = \["trl", "([\w-]+)"\]', source)}
    assert tags >= HIDDEN
