"""Putting something that begins and ends around every call of a function, whatever kind of function it is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol


class Interval(Protocol):
    """What begins and ends."""

    def begin(self, *, current: bool) -> object:
        """The call begins."""

    def end(self, failure: BaseException | None) -> None:
        """The call has ended."""


class Brackets(Interval, AbstractContextManager[object], AbstractAsyncContextManager[object], Protocol):
    """What is put around a call."""


New = Callable[[], Brackets]


def decorated(new: New, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, with a new bracket around each call; results and exceptions are its own."""
    if isinstance(function, (classmethod, staticmethod)):
        return type(function)(decorated(new, function.__func__))
    if inspect.isasyncgenfunction(function):
        return asynchronous_generator(new, function)
    if inspect.iscoroutinefunction(function):
        return _coroutine(new, function)
    if inspect.isgeneratorfunction(function):
        return _generator(new, function)
    return _plain(new, function)


def _plain(new: New, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with new():
            return function(*args, **kwargs)

    return call


def _coroutine(new: New, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        async with new():
            return await function(*args, **kwargs)

    return call


# Generators are not made current: between two items the consumer's code runs, which is not part of them.


def _generator(new: New, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        bracket = new()
        bracket.begin(current=False)
        try:
            result = yield from function(*args, **kwargs)
        except BaseException as error:
            bracket.end(error)
            raise
        bracket.end(None)
        return result

    return call


def asynchronous_generator(new: Callable[[], Interval], function: Callable[..., Any]) -> Callable[..., Any]:
    """For an asynchronous generator function; what is sent and thrown into it arrives there."""

    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        bracket = new()
        bracket.begin(current=False)
        failure: BaseException | None = None
        try:
            items = function(*args, **kwargs)
            step = items.asend(None)
            while True:
                item = await step
                try:
                    step = items.asend((yield item))
                except GeneratorExit:
                    await items.aclose()
                    raise
                except BaseException as thrown:  # noqa: BLE001 - it is thrown into the function's own body
                    step = items.athrow(thrown)
        except StopAsyncIteration:
            return
        except BaseException as error:
            failure = error
            raise
        finally:
            bracket.end(failure)
            del failure  # its traceback knows this frame: a circle

    return call
