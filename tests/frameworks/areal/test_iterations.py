"""Where iterations begin and end, and what of AReaL's timers is a phase."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from .conftest import Areal, settings, steps


def step(areal: Areal, global_step: int, *more: Callable[[], object]) -> None:
    """One step of AReaL's loop: 4 s for the wait, 2 s for the update, 1 s for the new weights."""
    areal.time("rollout", 4.0)
    areal.time("train_step", 2.0)
    areal.time("update_weights", 1.0)
    for one in more:
        one()
    areal.commit(global_step)


def train(areal: Areal, trainer: Any, body: Callable[[], object]) -> None:
    areal.play(train=lambda _: body())
    trainer.train()


def loops(areal: Areal) -> list[tuple[object, float]]:
    """Number and seconds of each iteration."""
    return [
        (span.attributes["rl.loop.iteration"], (span.end_ns - span.start_ns) / 1e9)
        for span in areal.telemetry.spans("rl.loop")
    ]


def durations(areal: Areal) -> dict[str, float]:
    """Seconds of each phase that was observed."""
    metrics = ("rl.sample.duration", "rl.train.duration", "rl.sync.duration", "rl.checkpoint.duration")
    found = {name: sum(point.sum or 0 for point in areal.telemetry.points(name)) for name in metrics}
    for point in areal.telemetry.points("rl.phase.duration"):
        found[str(point.attributes["rl.phase.name"])] = point.sum or 0
    return {name: seconds for name, seconds in found.items() if seconds}


@pytest.mark.parametrize(
    "name", ["rl_trainer:PPOTrainer", "sft_trainer:SFTTrainer", "dpo_trainer:DPOTrainer", "rw_trainer:RWTrainer"]
)
def test_training_begins_the_first_iteration_and_a_commit_the_next(areal: Areal, name: str) -> None:
    def body() -> None:
        areal.pass_(0.5)
        step(areal, 0)
        areal.pass_(0.25)
        step(areal, 1)

    train(areal, areal.trainer(settings(), name), body)
    assert loops(areal) == [(1, 7.5), (2, 7.25)]
    assert durations(areal) == {"rl.sample.duration": 8.0, "rl.train.duration": 4.0, "rl.sync.duration": 2.0}
    assert areal.telemetry.value("rl.loop.idle.ratio") == pytest.approx(4.25 / 7.25)


def test_waiting_for_rollouts_is_waiting(areal: Areal) -> None:
    train(areal, areal.trainer(settings()), lambda: step(areal, 0))
    assert areal.telemetry.value("rl.sample.duration", **{"rl.sample.kind": "wait"}) == 4.0
    assert areal.telemetry.value("rl.sync.duration", **{"rl.sync.destination": "sglang"}) == 1.0
    (sample,) = areal.telemetry.spans("rl.sample")
    assert sample.attributes["rl.sample.batch_size"] == 4
    (update,) = areal.telemetry.spans("rl.train")
    assert (update.attributes["rl.train.batch_size"], update.attributes["rl.role"]) == (2, "actor")


def test_what_is_not_due_is_no_phase_and_saves_nothing(areal: Areal) -> None:
    def occasions() -> None:
        for name in ("save", "checkpoint_for_recover", "eval"):
            areal.time(name, 0.00001, lambda: areal.due(False))

    train(areal, areal.trainer(settings()), lambda: step(areal, 0, occasions))
    assert set(durations(areal)) == {"rl.sample.duration", "rl.train.duration", "rl.sync.duration"}
    assert areal.telemetry.points("rl.checkpoint.operations") == []
    assert areal.telemetry.points("rl.checkpoint.step") == []
    assert areal.telemetry.points("rl.checkpoint.age") == []


def save(areal: Areal, name: str = "default") -> None:
    """Weights of a model are saved, since they are due."""
    areal.play(save=lambda _: areal.due())
    areal.module("utils.saver").Saver().save(None, 0, 0, 0, name=name)


def test_what_is_due_is_a_phase(areal: Areal) -> None:
    def occasions() -> None:
        areal.time("save", 0.0, steps(lambda: save(areal), lambda: areal.pass_(3.0)))
        areal.time("eval", 0.0, steps(areal.due, lambda: areal.pass_(5.0)))

    train(areal, areal.trainer(settings()), lambda: step(areal, 0, occasions))
    assert durations(areal)["rl.checkpoint.duration"] == 3.0
    assert durations(areal)["evaluate"] == 5.0
    assert areal.telemetry.value("rl.checkpoint.step") == 1


def test_weights_are_nothing_to_come_back_to_where_checkpoints_are_saved(areal: Areal) -> None:
    def body() -> None:
        step(areal, 0, lambda: areal.time("checkpoint_for_recover", 2.0, areal.due))
        step(areal, 1, lambda: areal.time("save", 3.0, lambda: save(areal)))

    train(areal, areal.trainer(settings(recover__mode="auto")), body)
    assert areal.telemetry.value("rl.checkpoint.operations", **{"rl.checkpoint.operation": "save"}) == 2
    assert areal.telemetry.value("rl.checkpoint.step") == 1


def test_weights_that_are_still_being_written_are_nothing_to_come_back_to(areal: Areal) -> None:
    trainer = areal.trainer(settings(actor__backend="archon:d4"))
    train(areal, trainer, lambda: step(areal, 0, lambda: areal.time("save", 3.0, lambda: save(areal))))
    assert areal.telemetry.value("rl.checkpoint.operations", **{"rl.checkpoint.operation": "save"}) == 1
    assert areal.telemetry.points("rl.checkpoint.step") == []


def test_weights_of_the_critic_alone_are_nothing_to_come_back_to(areal: Areal) -> None:
    def critic() -> None:
        areal.time("save", 0.0, steps(lambda: save(areal, "critic"), lambda: areal.pass_(3.0)))

    train(areal, areal.trainer(settings(critic=object())), lambda: step(areal, 0, critic))
    assert durations(areal)["rl.checkpoint.duration"] == 3.0
    assert areal.telemetry.points("rl.checkpoint.step") == []


def test_colocated_engines_making_room_is_a_phase_in_training_alone(areal: Areal) -> None:
    trainer = areal.trainer(settings())
    areal.time("rollout_offload", 1.0)
    areal.time("actor_offload", 1.0)

    def body() -> None:
        areal.time("rollout_onload", 0.5)
        step(areal, 0, lambda: areal.time("actor_offload", 0.25))

    train(areal, trainer, body)
    assert loops(areal) == [(1, 7.75)]
    assert durations(areal)["offload"] == 0.75


def test_a_loop_without_a_trainer_begins_with_its_first_timer(areal: Areal) -> None:
    found = SimpleNamespace(last_step_info=SimpleNamespace(global_step=6))
    areal.logger(settings())
    areal.play(load=lambda _: found)
    areal.module("utils.recover").RecoverHandler().load(None, None, None, None, None)
    areal.pass_(10.0)
    step(areal, 7)
    areal.pass_(1.0)
    step(areal, 8)
    assert loops(areal) == [(8, 7.0), (9, 8.0)]


def test_finding_nothing_to_recover_from_is_no_restore(areal: Areal) -> None:
    trainer = areal.trainer(settings())
    areal.module("utils.recover").RecoverHandler().load(None, None, None, None, None)
    train(areal, trainer, lambda: step(areal, 0))
    assert loops(areal) == [(1, 7.0)]
    assert areal.telemetry.spans("rl.checkpoint") == []


def test_training_again_goes_on_after_what_was_recovered(areal: Areal) -> None:
    trainer = areal.trainer(settings(), recovered=4)
    train(areal, trainer, lambda: step(areal, 5))
    areal.pass_(100.0)
    train(areal, trainer, lambda: step(areal, 5))
    assert loops(areal) == [(6, 7.0), (6, 7.0)]


def test_an_update_that_fails_fails_its_iteration_and_nothing_else_changes(areal: Areal) -> None:
    error = RuntimeError("out of memory")

    def fail() -> None:
        raise error

    def body() -> None:
        step(areal, 0)
        areal.time("rollout", 1.0)
        areal.time("train_step", 1.0, fail)

    with pytest.raises(RuntimeError) as caught:
        train(areal, areal.trainer(settings()), body)
    assert caught.value is error
    assert [span.attributes.get("error.type") for span in areal.telemetry.spans("rl.loop")] == [
        None,
        "RuntimeError",
    ]
    assert [span.attributes.get("error.type") for span in areal.telemetry.spans("rl.train")] == [
        None,
        "RuntimeError",
    ]
    assert areal.telemetry.value("rl.loop.duration", **{"error.type": "RuntimeError"}) == 2.0


def test_timers_after_the_last_commit_are_no_iteration(areal: Areal) -> None:
    def body() -> None:
        step(areal, 0)
        areal.time("rollout", 1.0)

    train(areal, areal.trainer(settings()), body)
    assert loops(areal) == [(1, 7.0)]


def test_timers_in_a_process_without_a_loop_are_nothing(areal: Areal) -> None:
    areal.module("trainer.rl_trainer")
    areal.time("train_step", 1.0)
    areal.commit(0)
    assert areal.telemetry.spans() == []
    assert areal.telemetry.points("rl.train.duration") == []
