"""Watching other people's functions: nothing of theirs changes, and nothing of ours stays."""

import asyncio
import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rlotel.errors import Faults
from rlotel.patching import Patches
from rlotel.watching import Call


class Base:
    def inherited(self, x: int) -> tuple[object, int]:
        return self, x

    @classmethod
    def inherited_class(cls, x: int) -> tuple[object, int]:
        return cls, x

    @staticmethod
    def inherited_static(x: int) -> int:
        return x


class Target(Base):
    value = 5

    def method(self, x: int, *, y: int = 2) -> tuple[object, int, int]:
        return self, x, y

    @classmethod
    def of_class(cls, x: int) -> tuple[object, int]:
        return cls, x

    @staticmethod
    def static(x: int) -> int:
        return x

    @property
    def prop(self) -> int:
        return 7


class Child(Target):
    pass


def function(x: int, y: int = 2, *rest: int, **named: int) -> object:
    """The docstring."""
    if x < 0:
        raise ERROR
    return RESULT


async def coroutine(x: int) -> object:
    await asyncio.sleep(0)
    return function(x)


def generator(n: int) -> Any:
    got = yield 0
    for _ in range(n):
        got = yield got
    return RESULT


async def async_generator(n: int) -> Any:
    got = yield 0
    for _ in range(n):
        got = yield got


@contextlib.contextmanager
def manager(x: int) -> Iterator[int]:
    try:
        yield x
    except IndexError:
        SWALLOWED.append(x)


@contextlib.asynccontextmanager
async def async_manager(x: int) -> Any:
    yield x


def listed(inner: Callable[..., Iterator[object]]) -> Callable[..., list[object]]:
    @functools.wraps(inner)
    def outer(*args: Any) -> list[object]:
        return list(inner(*args))

    return outer


@listed
def listed_generator(n: int) -> Iterator[int]:
    yield from range(n)


def spawning(inner: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(inner)
    def outer(*args: Any) -> Any:
        return inner(*args)

    return outer


spawned = spawning(coroutine)

RESULT, ERROR = object(), ValueError("theirs")
SWALLOWED: list[int] = []
MODULE = "rlotel_test_target"


class Log:
    """Patches whose observers write down what they see."""

    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []
        self.errors: list[Exception] = []
        self.patches = Patches(Faults(lambda _place, error: self.errors.append(error)))

    def watch(self, path: str, **more: Any) -> None:
        self.patches.watch(
            f"{MODULE}:{path}",
            before=lambda call: self.seen.append(("before", call.arguments)),
            after=lambda call: self.seen.append(("after", call.result)),
            failed=lambda call: self.seen.append(("failed", call.error)),
            **more,
        )


@pytest.fixture
def target() -> Iterator[types.ModuleType]:
    """The functions above in a module that nobody else patches, and afterwards all of it as it was."""
    module = types.ModuleType(MODULE)
    names = [
        "function", "coroutine", "generator", "async_generator", "manager", "async_manager", "listed_generator",
        "spawned", "Target", "Base", "Child",
    ]  # fmt: skip
    vars(module).update({name: globals()[name] for name in names})
    sys.modules[MODULE] = module
    owners = [module, Base, Target, Child]
    before = [dict(vars(owner)) for owner in owners]
    yield module
    del sys.modules[MODULE]
    for owner, was in zip(owners, before, strict=True):
        now = dict(vars(owner))
        assert {name for name in {*was, *now} if was.get(name) is not now.get(name)} == set()


@pytest.fixture
def log(target: types.ModuleType) -> Iterator[Log]:
    log = Log()
    yield log
    log.patches.undo()
    assert log.errors == []


def test_a_function_is_called_once_with_its_own_result_and_exception(log: Log, target: Any) -> None:
    log.watch("function")
    assert target.function(1, y=3, z=4) is RESULT
    with pytest.raises(ValueError) as raised:
        target.function(-1)
    assert raised.value is ERROR
    assert log.seen == [
        ("before", {"x": 1, "y": 3, "rest": (), "named": {"z": 4}}),
        ("after", RESULT),
        ("before", {"x": -1, "y": 2, "rest": (), "named": {}}),
        ("failed", ERROR),
    ]


def test_it_still_looks_like_itself(log: Log, target: Any) -> None:
    for path in ("function", "coroutine", "generator", "async_generator"):
        log.watch(path)
    assert (target.function.__name__, target.function.__doc__) == ("function", "The docstring.")
    assert inspect.signature(target.function) == inspect.signature(function)
    assert inspect.iscoroutinefunction(target.coroutine)
    assert inspect.isgeneratorfunction(target.generator)
    assert inspect.isasyncgenfunction(target.async_generator)


def test_methods_of_every_kind_keep_their_binding(log: Log, target: Any) -> None:
    paths = ["Target.method", "Target.of_class", "Target.static"]
    paths += [f"Child.{name}" for name in ("inherited", "inherited_class", "inherited_static")]
    for path in paths:
        log.watch(path)
    child = Child()
    assert child.method(1, y=3) == Target.method(child, 1, y=3) == (child, 1, 3)
    assert child.of_class(1) == Child.of_class(1) == (Child, 1)
    assert Target.of_class(1) == (Target, 1)
    assert child.static(1) == Target.static(1) == 1
    assert child.inherited(1) == (child, 1)
    assert child.inherited_class(1) == Child.inherited_class(1) == (Child, 1)
    assert child.inherited_static(1) == Child.inherited_static(1) == 1
    assert Base().inherited(2)[1] == 2  # not watched
    befores = [arguments for kind, arguments in log.seen if kind == "before"]
    assert befores == [
        {"self": child, "x": 1, "y": 3},
        {"self": child, "x": 1, "y": 3},
        {"cls": Child, "x": 1},
        {"cls": Child, "x": 1},
        {"cls": Target, "x": 1},
        {"x": 1},
        {"x": 1},
        {"self": child, "x": 1},
        {"cls": Child, "x": 1},
        {"cls": Child, "x": 1},
        {"x": 1},
        {"x": 1},
    ]


def test_a_method_may_be_asked_of_its_class(log: Log, target: Any) -> None:
    log.watch("Target.method")
    instance = Target()
    # Found again under its name it is the same object, or cloudpickle would send it by value, unwatched.
    assert Target.method is Target.method is Child.method
    assert Target.method(self=instance, x=1) == (instance, 1, 2)
    assert log.seen[0] == ("before", {"self": instance, "x": 1, "y": 2})


def test_a_coroutine_is_watched_as_it_runs(log: Log, target: Any) -> None:
    for path in ("coroutine", "spawned"):
        log.watch(path)
    waiting = target.coroutine(1)
    assert log.seen == []
    assert asyncio.run(waiting) is RESULT
    assert asyncio.run(target.spawned(2)) is RESULT
    with pytest.raises(ValueError) as raised:
        asyncio.run(target.spawned(-1))
    assert raised.value is ERROR
    kinds = [kind for kind, _ in log.seen]
    assert kinds == ["before", "after", "before", "after", "before", "failed"]


def test_a_generator_is_watched_as_it_runs(log: Log, target: Any) -> None:
    log.watch("generator")
    items = target.generator(2)
    assert log.seen == []
    assert [next(items), items.send("a"), items.send("b")] == [0, "a", "b"]
    with pytest.raises(StopIteration) as stopped:
        next(items)
    assert stopped.value.value is RESULT
    assert log.seen == [("before", {"n": 2}), ("after", RESULT)]
    with pytest.raises(ValueError), contextlib.closing(target.generator(2)) as items:
        next(items)
        items.throw(ERROR)
    assert log.seen[2:] == [("before", {"n": 2}), ("failed", ERROR)]


def test_an_asynchronous_generator_is_watched_as_it_runs(log: Log, target: Any) -> None:
    log.watch("async_generator")

    async def run() -> list[object]:
        items = target.async_generator(2)
        got = [await items.asend(None), await items.asend("a"), await items.asend("b")]
        with pytest.raises(StopAsyncIteration):
            await items.asend(None)
        return got

    assert asyncio.run(run()) == [0, "a", "b"]
    assert log.seen == [("before", {"n": 2}), ("after", None)]


def test_a_context_manager_is_watched_around_its_block(log: Log, target: Any) -> None:
    log.watch("manager")
    with target.manager(3) as value:
        assert (value, log.seen) == (3, [("before", {"x": 3})])
    with target.manager(4):
        log.seen[99].count(0)  # an error which it swallows
    with pytest.raises(ValueError) as raised, target.manager(5):
        raise ERROR
    assert raised.value is ERROR
    assert SWALLOWED.pop() == 4
    assert [kind for kind, _ in log.seen] == ["before", "after", "before", "after", "before", "failed"]

    @target.manager(6)  # type: ignore[untyped-decorator]
    def decorated() -> int:
        return 8

    assert (decorated(), decorated()) == (8, 8)


def test_an_asynchronous_context_manager_is_one(log: Log, target: Any) -> None:
    log.watch("async_manager")

    async def run() -> None:
        async with target.async_manager(3) as value:
            assert value == 3
        async with target.async_manager(3):
            raise ERROR

    with pytest.raises(ValueError) as raised:
        asyncio.run(run())
    assert raised.value is ERROR
    assert [kind for kind, _ in log.seen] == ["before", "after", "before", "failed"]


def test_a_decorated_function_gives_what_its_decorator_makes(log: Log, target: Any) -> None:
    log.watch("listed_generator")
    assert target.listed_generator(3) == [0, 1, 2]
    assert log.seen[-1] == ("after", [0, 1, 2])


def test_a_builtin_function_can_be_watched(log: Log, target: Any) -> None:
    target.sorted = sorted
    log.watch("sorted")
    assert target.sorted([2, 1]) == [1, 2]
    assert log.seen[-1] == ("after", [1, 2])
    log.patches.undo()
    del target.sorted


@pytest.mark.parametrize("path", ["Target.prop", "Target.value", "Target", "missing", "Target.missing", "a.b.c"])
def test_what_is_no_function_is_reported_and_left_alone(target: types.ModuleType, path: str) -> None:
    log = Log()
    log.watch(path)
    assert len(log.errors) == 1
    assert (Target().prop, Target.value) == (7, 5)
    log.patches.undo()


def fail(_: Call) -> Any:
    raise RuntimeError("ours")


@pytest.mark.parametrize("path", ["function", "coroutine", "manager", "generator", "async_generator"])
def test_errors_of_observers_are_contained(target: types.ModuleType, path: str) -> None:
    log = Log()
    log.patches.watch(f"{MODULE}:{path}", before=fail, after=fail, failed=fail, change=fail, result=fail)

    async def everything(x: int) -> list[object]:
        called = getattr(target, path)(x)
        if inspect.isawaitable(called):
            return [await called]
        if inspect.isasyncgen(called):
            return [item async for item in called]
        if inspect.isgenerator(called):
            return list(called)
        if path == "manager":
            with called as value:
                return [value]
        return [called]

    expected = {
        "function": [RESULT],
        "coroutine": [RESULT],
        "manager": [1],
        "generator": [0, None],
        "async_generator": [0, None],
    }
    assert asyncio.run(everything(1)) == expected[path]
    assert {str(error) for error in log.errors} == {"ours"}
    log.patches.undo()


def test_arguments_can_be_changed(log: Log, target: Any) -> None:
    log.patches.watch(f"{MODULE}:Target.static", change=lambda call: ([call.args[0] + 1], {}))  # type: ignore[arg-type, return-value]
    assert Target.static(1) == 2


@pytest.mark.parametrize("changed", [None, 5, (1,), (None, None), ((1,), None), ("a", {1})])
def test_a_change_that_is_none_leaves_the_arguments(target: types.ModuleType, changed: Any) -> None:
    log = Log()
    log.patches.watch(f"{MODULE}:Target.static", change=lambda _: changed)
    assert Target.static(9) == 9
    assert len(log.errors) == 1
    log.patches.undo()
