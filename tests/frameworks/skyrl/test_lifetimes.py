"""What is watched comes and goes: trainers, sessions, and parts of ours that fail."""

import gc
import json
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace

import rlotel
from rlotel import context
from rlotel.integrations.skyrl.setup import overrides
from rlotel.integrations.skyrl.tables import PACKAGES
from rlotel.phases import Loop

from .conftest import SETTINGS, Batch, Sky, answered, configuration, watched


def iterate(sky: Sky, trainer: Any, made: Callable[[Any], Any] = lambda _: answered([3], [5])) -> None:
    trainer.global_step += 1
    sky.parts["generate"] = made
    with sky.timer("step"), sky.timer("generate", 1.0):
        sky.generate(trainer)
    sky.log(trainer)


def nothing_is_current() -> bool:
    return context.current() is None and not trace.get_current_span().get_span_context().is_valid


def test_a_trainer_is_not_kept_alive(sky: Sky) -> None:
    trainer = sky.trainer()
    iterate(sky, trainer)
    gone = weakref.ref(trainer)
    sky.run(trainer.train())
    del trainer
    gc.collect()
    assert gone() is None
    with sky.timer("step"):  # of something else, such as SFT
        pass
    assert len(sky.telemetry.spans("rl.loop")) == 1


def test_a_trainer_that_was_made_before_another_one_is_followed_when_it_trains(sky: Sky) -> None:
    first = sky.trainer(settings={"trainer.train_batch_size": 16})
    second = sky.trainer()
    for trainer in (first, second):
        sky.parts["train"] = lambda arguments: iterate(sky, arguments["self"])
        sky.run(trainer.train())
    sizes = [span.attributes["rl.sample.batch_size"] for span in sky.telemetry.spans("rl.sample")]
    assert sizes == [32, 8]


def model(folder: Path, layers: int) -> str:
    """A model, as far as it says what it is made of."""
    folder.mkdir()
    sizes = {"hidden_size": 64, "intermediate_size": 256, "num_attention_heads": 4, "vocab_size": 1000}
    (folder / "config.json").write_text(json.dumps({**sizes, "num_hidden_layers": layers, "model_type": "llama"}))
    return str(folder)


def test_a_later_trainer_has_a_model_of_its_own(sky: Sky, tmp_path: Path) -> None:
    flops = []
    for layers in (1, 9, None):
        path = "/nowhere" if layers is None else model(tmp_path / str(layers), layers)
        trainer = sky.trainer(settings={"trainer.policy.model.path": path})
        for thread in threading.enumerate():
            if thread.name == "rlotel-models":
                thread.join(10)
        iterate(sky, trainer)
        flops.append(sky.value("rl.phase.flops", phase_name="sample"))
        sky.run(trainer.train())
    first, both, known = flops
    assert first is not None
    assert both is not None
    assert both - first > first > 0
    assert known == both


def test_a_trainer_that_was_made_before_it_was_watched_is_followed_when_it_trains(sky: Sky) -> None:
    kind = sky.module("trainer").RayPPOTrainer
    trainer = kind.__new__(kind)
    trainer.cfg, trainer.generator, trainer.global_step = configuration(SETTINGS), sky.generator(), 0
    trainer.tracker, trainer.dispatch = sky.module("utils.tracking").Tracking(), sky.dispatch()
    sky.parts["train"] = lambda _: iterate(sky, trainer)
    sky.run(trainer.train())
    (loop,) = sky.telemetry.spans("rl.loop")
    assert loop.attributes["rl.loop.iteration"] == 1
    assert sky.telemetry.session.identity.freeze()["rl.system"] == "skyrl"


@pytest.mark.parametrize("where", ["step", "generate", "environment", "evaluation", "log"])
def test_nothing_is_current_once_it_is_let_go_of(sky: Sky, where: str) -> None:
    trainer, environment = sky.trainer(), sky.make_environment()

    def let_go_in(place: str) -> None:
        if place == where:
            rlotel.uninstrument()

    def step(_: Any) -> dict[str, bool]:
        let_go_in("environment")
        return {"done": True}

    def made(_: Any) -> Any:
        let_go_in("generate")
        environment.step("")
        return answered([3], [5])

    sky.parts["step"], sky.parts["generate"] = step, made
    trainer.global_step = 1
    with sky.timer("step"):
        let_go_in("step")
        with sky.timer("generate"):
            sky.generate(trainer)
    with sky.timer("eval"):
        let_go_in("evaluation")
    let_go_in("log")
    assert nothing_is_current()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_a_generator_returns_that_is_unheard_of_leaves_nothing_open(sky: Sky, kind: str) -> None:
    trainer = sky.trainer(kind)
    trainer.global_step = 1
    unheard_of: dict[str, Any] = {"tokens": []}
    sky.parts["generate"] = lambda _: unheard_of
    with sky.timer("step"):
        assert sky.generate(trainer) is unheard_of
        assert isinstance(context.current(), Loop)
    sky.log(trainer)
    sky.run(trainer.train())
    assert nothing_is_current()
    assert sky.telemetry.points("rl.phase.age") == []
    assert [type(error) for _, error in sky.telemetry.errors] == [KeyError]
    sky.telemetry.errors.clear()


def test_what_of_ours_fails_leaves_no_phase_open(sky: Sky) -> None:
    trainer = sky.trainer(settings={"trainer.update_epochs_per_batch": "all of them"})
    trainer.global_step = 1
    with sky.timer("step"):
        trainer.fwd_logprobs_values_reward(Batch([8, 9]))
        with sky.timer("policy_train", 2.0):
            pass
        with sky.timer("sync_weights", 1.0):
            pass
    sky.log(trainer)
    loop = sky.telemetry.spans("rl.loop")[0]
    assert [span.parent_id for span in sky.telemetry.spans("rl.sync")] == [loop.span_id]
    assert sky.value("rl.train.duration") == 2.0
    assert nothing_is_current()
    assert [type(error) for _, error in sky.telemetry.errors] == [ValueError]
    sky.telemetry.errors.clear()


def test_a_generator_that_makes_rollouts_in_parts_counts_them_once(sky: Sky) -> None:
    trainer = sky.trainer()

    def in_parts(arguments: Any) -> Any:
        if arguments["disable_tqdm"]:
            return answered([3], [5])
        for _ in range(2):
            sky.run(trainer.generator.generate(None, disable_tqdm=True))
        return answered([3, 3], [5, 5])

    iterate(sky, trainer, in_parts)
    assert sky.value("rl.sample.samples") == 2
    assert sky.value("rl.sample.tokens", token_type="completion") == 10


def test_what_an_environment_answered_was_given_to_the_policy_as_skyrl_says(sky: Sky) -> None:
    metrics = {"generate/avg_assistant_tokens": 3.5, "generate/avg_num_tokens": 4.5}
    iterate(sky, sky.trainer(), lambda _: answered([3, 3], [5, 4], rollout_metrics=metrics))
    assert sky.value("rl.sample.tokens", token_type="completion") == 7
    assert sky.value("rl.sample.tokens", token_type="prompt") == 6 + 2


def test_where_it_does_not_say_the_loss_does(sky: Sky) -> None:
    trainer, environment = sky.trainer(), sky.make_environment()
    sky.parts["step"] = lambda _: {"done": False}

    def rollouts(_: Any) -> Any:
        for _ in range(4):
            environment.step("")
        # Of the second, which was cut off, nothing is trained on.
        return answered([3, 3], [5, 4], loss_masks=[[1, 1, 0, 0, 1], [0, 0, 0, 0]])

    iterate(sky, trainer, rollouts)
    assert sky.value("rl.sample.tokens", token_type="completion") == 3 + 4
    assert sky.value("rl.sample.tokens", token_type="prompt") == 6 + 2


class NumPyBool:
    """As `numpy.bool_`, which is no bool of Python's."""

    def __init__(self, value: bool) -> None:
        self._value = value

    def __bool__(self) -> bool:
        return self._value


NumPyBool.__name__ = "bool_"


def test_an_environment_may_say_with_numpy_that_it_is_done(sky: Sky) -> None:
    trainer, environment = sky.trainer(), sky.make_environment()

    def step(arguments: Any) -> dict[str, Any]:
        sky.pass_(arguments["action"])
        return {"done": NumPyBool(arguments["action"] > 1)}

    sky.parts["step"] = step
    iterate(sky, trainer, lambda _: (environment.step(1.0), environment.step(2.0), answered([3], [5]))[2])
    assert sky.value("rl.phase.duration", phase_name="tool") == 1.0
    assert sky.value("rl.reward.duration") == 2.0


def test_settings_of_a_group_that_was_chosen_by_name_are_read() -> None:
    line = ["python", "-m", "skyrl.train.entrypoints.main_base", "trainer=small", "trainer.epochs=3", "a.b=1"]
    assert overrides(line, PACKAGES) == {"trainer": {"epochs": "3"}, "a": {"b": "1"}}


def ours() -> int:
    """How many objects of our classes there are."""
    gc.collect()
    return sum(str(type(one).__module__).startswith("rlotel.") for one in gc.get_objects())


def test_iterations_leave_nothing_behind(sky: Sky) -> None:
    trainer, environment = sky.trainer("async"), sky.make_environment()
    sky.parts["step"] = lambda _: {"done": True}
    sizes = []
    for _ in range(3):
        for _ in range(100):
            iterate(sky, trainer, lambda _: (environment.step(""), answered([3], [5]))[1])
        sizes.append(ours())
    assert sizes[1] == sizes[2]


def test_a_loop_on_any_node_of_a_cluster_is_the_one_that_reports(tmp_path: Path) -> None:
    """Kubeflow and others give each node a rank, which its Ray hands down."""
    with watched(tmp_path, environ={"RANK": "1", "WORLD_SIZE": "2"}) as sky:
        iterate(sky, sky.trainer())
        assert sky.value("rl.loop.duration") == 1.0
        assert sky.value("rl.sample.samples") == 1
        assert len(sky.telemetry.spans("rl.loop")) == 1


@pytest.mark.parametrize("fails", [False, True])
def test_another_trainer_is_no_restart_unless_the_one_before_failed(sky: Sky, fails: bool) -> None:
    def fail(_: Any) -> Any:
        raise ConnectionError

    first = sky.trainer()
    for _ in range(3):
        iterate(sky, first)
    if fails:
        with pytest.raises(ConnectionError):
            iterate(sky, first, fail)
    second = sky.trainer()
    for _ in range(2):
        iterate(sky, second)
    assert sky.value("rl.restarts", restart_reason="unknown") == int(fails)
    assert len({span.trace_id for span in sky.telemetry.spans("rl.loop")}) == 5 + int(fails)
