"""What is watched comes and goes, tensors are anywhere, and results are of another version."""

import copy
import gc
import pickle
from dataclasses import dataclass, field, fields
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace

import rlotel
from rlotel import context
from rlotel.integrations.openrlhf.rows import MADE, TURNS
from rlotel.testing import captured

from .conftest import Openrlhf, Tensor, rollout
from .test_trainer import batch, generate, step


class OnDevice(Tensor):
    """A tensor on an accelerator: whoever asks for its sum waits for it."""

    device = SimpleNamespace(type="cuda")

    def sum(self) -> float:
        raise AssertionError("it is waited for")


@dataclass
class Experience:
    """A rollout, which is a dataclass in OpenRLHF."""

    action_mask: Any = None
    total_length: Any = None
    rewards: Any = None
    info: dict[str, Any] = field(default_factory=dict)


def test_tensors_on_an_accelerator_are_not_waited_for(openrlhf: Openrlhf) -> None:
    openrlhf.make_trainer()
    rows = [Experience(OnDevice(2), OnDevice(5), OnDevice(1)) for _ in range(4)]
    generate(openrlhf, (rows, None, 2, False))
    step(openrlhf, 1, rows, {"policy_loss": 0.5})
    telemetry = openrlhf.telemetry
    assert telemetry.value("rl.sample.samples") == telemetry.value("rl.sample.episodes") == 4
    assert telemetry.value("rl.sample.tokens", **{"rl.token.type": "completion"}) == 0
    assert telemetry.value("rl.train.loss") == 0.5


def test_what_is_left_on_a_rollout_does_not_change_it(openrlhf: Openrlhf) -> None:
    openrlhf.make_trainer()
    rows = [Experience(rewards=1.0) for _ in range(4)]
    generate(openrlhf, (rows, None, 2, False))
    assert type(vars(rows[0])[MADE]) is int
    assert rows[0] == Experience(rewards=1.0)
    assert repr(rows[0]) == repr(Experience(rewards=1.0))
    assert [one.name for one in fields(rows[0])] == ["action_mask", "total_length", "rewards", "info"]
    assert pickle.loads(pickle.dumps(rows[0])) == copy.deepcopy(rows[0]) == rows[0]


def test_it_is_taken_off_again_before_anything_is_made_of_the_rollouts(openrlhf: Openrlhf) -> None:
    openrlhf.make_trainer()
    rows = [rollout(4, 2, turns=2) for _ in range(4)]
    broken = rollout(4, 2, turns=2)
    del broken.action_mask
    generate(openrlhf, ([*rows, broken], None, 2, False))
    left: list[set[str]] = []
    openrlhf.play(make_experience_batch=lambda _: left.extend({MADE, TURNS} & {*vars(one)} for one in rows))
    openrlhf.maker.make_experience_batch([*rows, broken])
    assert left == [set()] * 4
    assert [type(error) for _, error in openrlhf.telemetry.errors] == [AttributeError]
    openrlhf.telemetry.errors.clear()


@pytest.mark.parametrize("result", [([SimpleNamespace()], 1, False), (["text"], None, 2, False)])
def test_a_result_of_another_version_leaves_nothing_open(openrlhf: Openrlhf, result: Any) -> None:
    openrlhf.make_trainer()
    generate(openrlhf, result)
    step(openrlhf, 1, batch())
    telemetry = openrlhf.telemetry
    (loop,) = telemetry.spans("rl.loop")
    children = [span for span in telemetry.spans() if span.parent_id == loop.span_id]
    assert {"rl.sample", "rl.train", "rl.sync"} <= {span.name for span in children}
    assert telemetry.points("rl.phase.age") == []
    assert len({place for place, _ in telemetry.errors}) == 1
    telemetry.errors.clear()


@pytest.mark.parametrize("result", [([SimpleNamespace()], 1, False), (["text"], None, 2, False)])
def test_nor_does_it_where_only_rollouts_are_made(openrlhf: Openrlhf, result: Any) -> None:
    openrlhf.make_generator()
    openrlhf.telemetry.session.recorder.process.launcher = False
    generate(openrlhf, result)
    assert context.current() is None
    assert openrlhf.telemetry.value("rl.sample.duration") == 1.0
    assert len(openrlhf.telemetry.errors) == 1
    openrlhf.telemetry.errors.clear()


def test_a_dynamic_batch_takes_no_step_with_what_is_too_little_for_one(openrlhf: Openrlhf) -> None:
    openrlhf.make_trainer(train__batch_size=3, train__max_epochs=2, train__dynamic_batch_enable=True)
    for number in (1, 2, 3):
        rows = batch()
        generate(openrlhf, (rows, None, 2, False))
        step(openrlhf, number, rows)
    assert openrlhf.telemetry.value("rl.train.steps", **{"rl.role": "actor"}) == 3 * 2


@pytest.mark.parametrize("where", ["generate", "between", "update"])
def test_nothing_is_current_once_it_is_let_go_of(openrlhf: Openrlhf, where: str) -> None:
    trainer, rows = openrlhf.make_trainer(), batch()

    def made(_: Any) -> Any:
        if where == "generate":
            rlotel.uninstrument()
        return rows, None, 2, False

    def update(_: Any) -> None:
        trainer.actor_model_group.async_run_method("fit")
        if where == "update":
            rlotel.uninstrument()

    openrlhf.play(generate_samples=made, ppo_train=update)
    openrlhf.generator.generate_samples()
    if where == "between":
        rlotel.uninstrument()
    openrlhf.maker.make_experience_batch(rows)
    trainer.ppo_train(0)
    assert context.current() is None
    assert not trace.get_current_span().get_span_context().is_valid


def ours() -> int:
    """How many objects of our classes there are."""
    gc.collect()
    return sum(str(type(one).__module__).startswith("rlotel.") for one in gc.get_objects())


def test_iterations_leave_nothing_behind(openrlhf: Openrlhf) -> None:
    openrlhf.make_trainer(critic=True)
    sizes = []
    for part in range(3):
        for number in range(100):
            rows = batch()
            generate(openrlhf, (rows, None, 2, False))
            step(openrlhf, 100 * part + number + 1, rows)
        sizes.append(ours())
    assert sizes[1] == sizes[2]


def test_a_loop_on_any_node_of_a_cluster_is_the_one_that_reports(standins: None) -> None:
    """Kubeflow and others give each node a rank, which its Ray hands down."""
    with captured({"RANK": "1", "WORLD_SIZE": "2"}, frameworks=("openrlhf", "threads")) as telemetry:
        openrlhf, rows = Openrlhf(telemetry), batch()
        openrlhf.make_trainer()
        generate(openrlhf, (rows, None, 2, False))
        step(openrlhf, 1, rows, {"policy_loss": 0.5})
        assert telemetry.value("rl.loop.duration") == 3.5
        assert telemetry.value("rl.sample.samples") == 4
        assert telemetry.value("rl.train.loss") == 0.5
