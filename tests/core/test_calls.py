"""Whatever way a watched function is called, it is called as if nobody watched."""

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rlotel.errors import Faults
from rlotel.patching import Call, Patches


class Meta(type):
    def made(cls, number: int) -> str:
        return f"{cls.__name__}{number}"


class Strange(dict[str, Any], metaclass=Meta):
    """A class with methods of many kinds."""

    __slots__ = ()

    def keyword_only(self, *, x: int) -> int:
        return x

    @classmethod
    def of_class(cls, *, x: int) -> tuple[str, int]:
        return cls.__name__, x

    @staticmethod
    def of_none(*, x: int) -> int:
        return x

    @staticmethod
    def named_self(self: int) -> int:
        return self


NAMES = ("keyword_only", "of_class", "of_none", "named_self", "made", "update", "fromkeys", "get")


@pytest.fixture
def errors() -> list[Exception]:
    return []


@pytest.fixture
def patches(errors: list[Exception]) -> Iterator[Patches]:
    patches = Patches(Faults(lambda _place, error: errors.append(error)))
    yield patches
    patches.undo()


@pytest.fixture
def calls(patches: Patches) -> list[Call]:
    """The calls of the class's methods so far."""
    calls: list[Call] = []
    for name in NAMES:
        patches.watch(f"{__name__}:Strange.{name}", after=calls.append)
    return calls


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (lambda: Strange().keyword_only(x=1), 1),
        (lambda: Strange.keyword_only(self=Strange(), x=1), 1),
        (lambda: Strange.of_class(x=1), ("Strange", 1)),
        (lambda: Strange().of_class(x=1), ("Strange", 1)),
        (lambda: Strange.of_none(x=1), 1),
        (lambda: Strange().of_none(x=1), 1),
        (lambda: Strange.named_self(self=1), 1),
        (lambda: Strange(a=1).get("a"), 1),
        (lambda: Strange.fromkeys("ab", 1), {"a": 1, "b": 1}),
        (lambda: Strange().update(self=1), None),
    ],
)
def test_arguments_arrive_as_they_were_given(calls: list[Call], call: Callable[[], Any], result: Any) -> None:
    assert call() == result
    assert [call.result for call in calls] == [result]


def test_a_call_that_is_wrong_fails_as_it_always_did(calls: list[Call]) -> None:
    with pytest.raises(TypeError):
        Strange.update(self=1)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        Strange.keyword_only(x=1)  # type: ignore[call-arg]


def test_a_method_of_its_metaclass_is_not_watched_and_works(calls: list[Call], errors: list[Exception]) -> None:
    assert Strange.made(3) == "Strange3"
    assert "made" not in vars(Strange)
    assert [str(error) for error in errors] == ["Strange has no made"]
    assert calls == []


def test_what_is_watched_many_times_does_not_cost_twice_as_much_each_time(
    patches: Patches, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Double:
        def __call__(self, number: int) -> int:
            return 2 * number

        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            raise AttributeError(name)

    module = types.ModuleType("watched_often")
    module.double = Double()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "watched_often", module)
    seen: list[Call] = []
    for _ in range(12):
        patches.watch("watched_often:double", after=seen.append)
    asked.clear()
    assert module.double(2) == 4
    assert len(seen) == 12
    assert len(asked) <= 12 * 10
