"""A class that is met only at run time, such as a user's environment, is watched and let go of."""

import copy
import pickle
from typing import Any

import pytest

from rlotel.errors import Faults
from rlotel.patching import Patches


class Environment:
    def __init__(self, name: str) -> None:
        self.name = name

    def step(self, action: int) -> str:
        return f"{self.name}{action}"


class Derived(Environment):
    """One that inherits the method that is watched."""


@pytest.fixture
def errors() -> list[Exception]:
    return []


@pytest.fixture
def patches(errors: list[Exception]) -> Patches:
    return Patches(Faults(lambda _place, error: errors.append(error)))


def test_all_its_objects_are_watched_and_can_be_told_apart(patches: Patches) -> None:
    one, other = Environment("a"), Environment("b")
    seen: list[Any] = []
    patches.watch_method(Environment, "step", after=lambda call: seen.append((call.instance, call.result)))
    assert [one.step(1), other.step(action=2)] == ["a1", "b2"]
    assert seen == [(one, "a1"), (other, "b2")]
    patches.undo()
    assert "step" in vars(Environment)
    assert one.step(3) == "a3"
    assert len(seen) == 2


def test_it_can_be_let_go_of_before_the_session_ends(patches: Patches) -> None:
    original = vars(Environment)["step"]
    let_go = patches.watch_method(Environment, "step")
    assert vars(Environment)["step"] is not original
    let_go()
    assert vars(Environment)["step"] is original
    let_go()
    patches.undo()
    assert vars(Environment)["step"] is original


def test_a_method_that_is_inherited_is_watched_in_that_class_alone(patches: Patches) -> None:
    seen: list[Any] = []
    let_go = patches.watch_method(Derived, "step", before=lambda call: seen.append(call.instance))
    Environment("a").step(1)
    one = Derived("b")
    one.step(1)
    assert seen == [one]
    let_go()
    assert "step" not in vars(Derived)


def test_its_objects_can_be_pickled_and_copied(patches: Patches) -> None:
    patches.watch_method(Environment, "step")
    one = Environment("a")
    assert [made.step(1) for made in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one))] == [
        "a1"
    ] * 3
    patches.undo()


def test_a_class_made_in_a_function_is_pickled_with_the_method_that_it_was(patches: Patches) -> None:
    class Local:
        def step(self) -> int:
            return 7

    patches.watch_method(Local, "step")
    (function,) = Local.__dict__["step"].__reduce_ex__(2)[1][0]
    assert function(Local()) == 7
    assert type(function).__name__ == "function"
    patches.undo()


def test_what_the_class_does_not_have_is_reported(patches: Patches, errors: list[Exception]) -> None:
    let_go = patches.watch_method(Environment, "reset")
    let_go()
    assert [type(error) for error in errors] == [AttributeError]


def test_the_one_that_is_let_go_of_observes_no_more_though_another_watches(patches: Patches) -> None:
    original = vars(Environment)["step"]
    seen: list[int] = []
    first = patches.watch_method(Environment, "step", after=lambda _call: seen.append(1))
    second = patches.watch_method(Environment, "step", after=lambda _call: seen.append(2))
    first()
    assert Environment("a").step(1) == "a1"
    assert seen == [2]
    second()
    assert vars(Environment)["step"] is original


def test_sessions_that_end_in_the_order_they_began_leave_nothing_behind(errors: list[Exception]) -> None:
    one, other = (Patches(Faults(lambda _place, error: errors.append(error))) for _ in range(2))
    for session in (one, other):
        session.watch_method(Derived, "step")
    one.undo()
    other.undo()
    assert "step" not in vars(Derived)
    assert errors == []
