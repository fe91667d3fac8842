"""What is watched comes and goes: trainers, loops that break off, and sessions."""

import gc

import pytest
from opentelemetry import trace

import rlotel
from rlotel import context

from .conftest import Areal, settings


def step(areal: Areal, global_step: int) -> None:
    areal.time("rollout", 1.0)
    areal.time("train_step", 2.0)
    areal.commit(global_step)


def train(areal: Areal, trainer: object, first: int = 0) -> None:
    areal.play(train=lambda _: step(areal, first))
    trainer.train()  # type: ignore[attr-defined]


def test_a_later_trainer_of_the_process_has_its_own_settings(areal: Areal) -> None:
    train(areal, areal.trainer(settings()))
    train(areal, areal.trainer(settings(train_dataset__batch_size=8, rollout__backend="vllm:d2")))
    sizes = [span.attributes["rl.sample.batch_size"] for span in areal.telemetry.spans("rl.sample")]
    assert sizes == [4, 16]


def test_trainers_may_take_turns(areal: Areal) -> None:
    one, other = areal.trainer(settings()), areal.trainer(settings(train_dataset__batch_size=8))
    for trainer in (one, other, one):
        train(areal, trainer)
    sizes = [span.attributes["rl.sample.batch_size"] for span in areal.telemetry.spans("rl.sample")]
    assert sizes == [4, 16, 4]


def test_a_trainer_that_was_made_before_it_was_watched_is_followed_when_it_trains(areal: Areal) -> None:
    kind = areal.module("trainer.rl_trainer").PPOTrainer
    trainer = kind.__new__(kind)
    trainer.config, trainer.recover_info = settings(), None
    train(areal, trainer)
    (loop,) = areal.telemetry.spans("rl.loop")
    assert loop.attributes["rl.loop.iteration"] == 1
    assert areal.telemetry.session.identity.freeze()["rl.system"] == "areal"


def test_a_loop_that_broke_off_is_no_part_of_the_next_one(areal: Areal) -> None:
    def fail() -> None:
        raise ConnectionError

    areal.logger(settings())
    step(areal, 0)
    areal.time("rollout", 1.0)
    with pytest.raises(ConnectionError):
        areal.time("train_step", 1.0, fail)
    areal.pass_(1000.0)
    areal.logger(settings())
    step(areal, 0)
    loops = areal.telemetry.spans("rl.loop")
    assert [(loop.attributes["rl.loop.iteration"], (loop.end_ns - loop.start_ns) / 1e9) for loop in loops] == [
        (1, 3.0),
        (1, 3.0),
    ]


@pytest.mark.parametrize("inside", [False, True])
def test_nothing_is_current_once_it_is_let_go_of(areal: Areal, inside: bool) -> None:
    areal.logger(settings())
    areal.time("rollout", 1.0, rlotel.uninstrument if inside else lambda: None)
    rlotel.uninstrument()
    assert context.current() is None
    assert not trace.get_current_span().get_span_context().is_valid


def ours() -> int:
    """How many objects of our classes there are."""
    gc.collect()
    return sum(str(type(one).__module__).startswith("rlotel.") for one in gc.get_objects())


def test_iterations_leave_nothing_behind(areal: Areal) -> None:
    areal.logger(settings())
    sizes = []
    for part in range(3):
        for number in range(100):
            step(areal, 100 * part + number)
        sizes.append(ours())
    assert sizes[1] == sizes[2]
