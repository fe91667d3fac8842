"""Watching what a decorator decorates, where the decorator looks at who calls it."""

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from rlotel.errors import Faults
from rlotel.patching import Patches
from rlotel.watching import Call


def awaited_or_not(function: Callable[..., Any]) -> Callable[..., Any]:
    """A coroutine for a coroutine function, the result for any other: told apart by the caller's frame."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        caller = inspect.currentframe()
        assert caller is not None
        assert caller.f_back is not None
        coroutine = function(*args)
        return coroutine if caller.f_back.f_code.co_flags & inspect.CO_COROUTINE else asyncio.run(coroutine)

    return call


class Engine:
    @awaited_or_not
    async def move(self, bytes_: int) -> int:
        await asyncio.sleep(0)
        return bytes_


HERE = f"{__name__}:Engine.move"
DECORATOR = f"{__name__}:awaited_or_not"


def test_both_ways_of_calling_work_and_are_seen() -> None:
    seen: list[tuple[str, object]] = []
    original = vars(Engine)["move"]
    patches = Patches(Faults())
    patches.watch(
        HERE,
        before=lambda call: seen.append(("before", call.arguments["bytes_"])),
        after=lambda call: seen.append(("after", call.result)),
        under=DECORATOR,
    )

    async def caller() -> int:
        return int(await Engine().move(4))

    assert Engine().move(3) == 3
    assert asyncio.run(caller()) == 4
    assert seen == [("before", 3), ("after", 3), ("before", 4), ("after", 4)]
    patches.undo()
    assert vars(Engine)["move"] is original
    assert Engine().move(5) == 5
    assert len(seen) == 4


@pytest.mark.filterwarnings("ignore:coroutine")
def test_without_it_the_decorator_would_take_us_for_the_caller() -> None:
    """Why it is needed: what looks like a plain function is called from a plain function, ours."""
    patches = Patches(Faults())
    seen: list[Call] = []
    patches.watch(HERE, before=seen.append)

    async def caller() -> Any:
        return Engine().move(4)

    try:
        with pytest.raises(RuntimeError, match="running event loop"):
            asyncio.run(caller())
    finally:
        patches.undo()
    assert len(seen) == 1
