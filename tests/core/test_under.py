"""Watching what a decorator decorates, where the decorator looks at who calls it."""

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any

from rlotel.errors import Faults
from rlotel.patching import Patches


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
