"""Trainers that are let go of, and sessions that end or begin while one trains; weights with and without rlotel.

Each function makes sure of what it is named for, in sessions of its own; what failed is written down.
"""

import contextvars
import gc
import hashlib
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import tiny  # type: ignore[import-not-found]
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from rlotel import context
from rlotel.testing import Telemetry, captured

words = tiny.tokenizer()
data = tiny.prompts()
SHORT = {"max_steps": 2, "max_completion_length": 4, "per_device_eval_batch_size": tiny.ROWS}


class Once(TrainerCallback):  # type: ignore[misc]  # transformers is not installed where this is checked
    """Does something between the two parts of the second iteration."""

    def __init__(self, do: Callable[[], object]) -> None:
        self.do = do

    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == 1:
            self.do()


def trainer(kind: Any = GRPOTrainer, do: Callable[[], object] = lambda: None, **settings: Any) -> Any:
    return kind(
        model=tiny.model(words),
        reward_funcs=[tiny.digits],
        args=GRPOConfig(**tiny.rollouts("out", **{**SHORT, **settings})),
        train_dataset=data,
        eval_dataset=data.select(range(8)),
        processing_class=words,
        callbacks=[Once(do)],
    )


def followed() -> Any:
    return captured(frameworks=["trl"])


def numbers(seen: Telemetry) -> list[object]:
    return [span.attributes["rl.loop.iteration"] for span in seen.spans("rl.loop")]


def phases(seen: Telemetry, name: str) -> int:
    return sum(span.attributes.get("rl.phase.name", span.name) == name for span in seen.spans())


def weights(learnt: Any) -> str:
    return hashlib.sha256(
        b"".join(part.detach().numpy().tobytes() for part in learnt.model.parameters())
    ).hexdigest()


def learnt_the_same_to_the_bit() -> None:
    settings: dict[str, Any] = {"num_iterations": 2, "beta": 0.02, "max_steps": 3}
    alone = trainer(**settings)
    alone.train()
    with followed() as seen:
        beside = trainer(**settings)
        beside.train()
        assert numbers(seen) == [1, 2, 3]
    assert weights(alone) == weights(beside)


def nothing_of_a_trainer_is_kept() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    def own() -> type:
        class Own(GRPOTrainer):  # type: ignore[misc]
            def _calculate_rewards(self, *arguments: Any) -> Any:
                return super()._calculate_rewards(*arguments)

        return Own

    with followed() as seen:
        for do in (lambda: None, interrupt):
            training = trainer(own(), do)
            parts = [weakref.ref(part) for part in (type(training), training, training.model)]
            try:
                training.train()
            except KeyboardInterrupt:
                assert do is interrupt
            del training
            gc.collect()
            assert [part() for part in parts] == [None] * 3, parts
        assert numbers(seen) == [1, 2, 3, 4]
        assert seen.value("rl.train.steps") == 3


def two_trainers_that_take_turns_are_no_restarts() -> None:
    with followed() as seen:
        one, other = trainer(max_steps=1), trainer(max_steps=1)
        for training in (one, other, one, other):
            training.train()
        assert numbers(seen) == [1, 2, 3, 4]
        assert sum(point.value or 0 for point in seen.points("rl.restarts")) == 0


def tags_of_the_users_own_make_no_difference() -> None:
    class Tagged(GRPOTrainer):  # type: ignore[misc]
        _tag_names = ("mine",)

    with followed() as seen:
        trainer(Tagged, max_steps=1).train()
        (loop,) = seen.spans("rl.loop")
        assert loop.resource["rl.algorithm"] == "grpo"


@contextmanager
def unknown(training: Any) -> Iterator[None]:
    """Settings that rlotel cannot read, and all others can."""
    args = training.args

    class Settings:
        def __getattr__(self, name: str) -> Any:
            if name == "output_dir" and sys._getframe(1).f_globals["__name__"].startswith("rlotel."):
                raise LookupError(name)
            return getattr(args, name)

    training.args = Settings()
    try:
        yield
    finally:
        training.args = args


def an_evaluation_of_what_cannot_be_read_is_one_and_the_next_trainer_is_followed() -> None:
    with followed() as seen:
        evaluated = trainer()
        with unknown(evaluated):
            evaluated.evaluate()
        assert phases(seen, "evaluate") == 1
        assert [type(error) for _, error in seen.errors] == [LookupError]
        seen.errors.clear()
        trainer(max_steps=1).train()
        assert numbers(seen) == [1]


def rollouts_that_cannot_be_counted_end_all_the_same() -> None:
    class Odd(GRPOTrainer):  # type: ignore[misc]
        def _generate(self, prompts: list[Any]) -> Any:
            return iter(super()._generate(prompts))

    with followed() as seen:
        trainer(Odd, max_steps=1).train()
        (sample,), (reward,) = seen.spans("rl.sample"), seen.spans("rl.reward")
        assert reward.parent_id == sample.parent_id
        assert {type(error) for _, error in seen.errors} == {TypeError}
        seen.errors.clear()


def a_session_that_ends_in_an_iteration_leaves_nothing_current() -> None:
    current: list[object] = []

    def end() -> None:
        seen.session.close()
        current.append(context.current())

    with followed() as seen:
        trainer(do=end, max_steps=3).train()
    assert [*current, context.current()] == [None, None]


def a_session_that_begins_in_an_iteration_follows_the_next_training() -> None:
    opened: list[Telemetry] = []
    with ExitStack() as stack:
        trainer(do=lambda: opened.append(stack.enter_context(followed()))).train()
        trainer(max_steps=1).train()
        assert numbers(opened[0]) == [1]
        assert opened[0].value("rl.sample.samples") == 2 * tiny.ROWS


for shown in (
    learnt_the_same_to_the_bit,
    nothing_of_a_trainer_is_kept,
    two_trainers_that_take_turns_are_no_restarts,
    tags_of_the_users_own_make_no_difference,
    an_evaluation_of_what_cannot_be_read_is_one_and_the_next_trainer_is_followed,
    rollouts_that_cannot_be_counted_end_all_the_same,
    a_session_that_ends_in_an_iteration_leaves_nothing_current,
    a_session_that_begins_in_an_iteration_follows_the_next_training,
):
    failure = None
    try:
        contextvars.copy_context().run(shown)
    except Exception:  # noqa: BLE001 - each is shown on its own
        failure = traceback.format_exc()
    tiny.write("logged", {"shown": shown.__name__, "failure": failure})
