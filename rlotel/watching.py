"""What is done around a call of a watched function, whatever kind of function it is.

The function runs once, with its own result and its own exception, whatever happens to ours.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from rlotel.decorating import asynchronous_generator
from rlotel.errors import Faults

Observer = Callable[["Call"], None]


@dataclass
class Call:
    """One call of a watched function, as observers see it."""

    instance: Any
    """The object the method belongs to, None for a function."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    signature: inspect.Signature | None
    result: Any = None
    """What the call returned; for `after` only."""
    error: BaseException | None = None
    """What the call raised; for `failed` only."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What `before` leaves for `after`."""

    @functools.cached_property
    def arguments(self) -> dict[str, Any]:
        """All arguments by name, defaults included. Costs some 20 µs: read `args` in hot functions."""
        if self.signature is None:
            return dict(self.kwargs)
        args = self.args if self.instance is None else (self.instance, *self.args)
        bound = self.signature.bind(*args, **self.kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)


@dataclass(frozen=True)
class Watch:
    """What is done around a function; each part is contained, and `failed` gets what `after` would not."""

    before: Observer | None = None
    after: Observer | None = None
    failed: Observer | None = None
    change: Callable[[Call], tuple[tuple[Any, ...], dict[str, Any]]] | None = None
    """New arguments for the call. If it fails, the original ones go through."""
    result: Callable[[Call], Any] | None = None
    """Another result of a function or coroutine, in place of `call.result`. If it fails, that one goes through."""


def bracket(faults: Faults, target: str, watch: Watch, wrapped: Any) -> Callable[..., Any]:
    """The wrapper that fits what the function is."""
    body = inspect.unwrap(wrapped)
    try:
        signature: inspect.Signature | None = inspect.signature(body)
    except (TypeError, ValueError):
        signature = None  # builtins need not say

    def enter(instance: Any, args: Any, kwargs: Any) -> Call:
        # A builtin function's instance is its module.
        call = Call(None if isinstance(instance, ModuleType) else instance, args, kwargs, signature)
        if watch.change is not None:
            with faults.contain(target):
                args, kwargs = watch.change(call)
                call.args, call.kwargs = tuple(args), dict(kwargs)
        _tell(faults, target, watch.before, call)
        return call

    def left(call: Call, result: Any = None, error: BaseException | None = None) -> Any:
        call.result, call.error = result, error
        _tell(faults, target, watch.after if error is None else watch.failed, call)
        # Its traceback knows the frame that has this call: as a circle, all that those frames hold, perhaps the
        # memory of an accelerator that ran out, would be there until the next collection.
        call.error = None
        if watch.result is not None and error is None:
            with faults.contain(target):
                return watch.result(call)
        return result

    return functools.partial(_kind(wrapped, body), enter, left)


def _kind(wrapped: Any, body: Any) -> Callable[..., Any]:
    """How it is called. Its outermost layer decides: a decorator may make a list of what a generator yields."""
    if getattr(getattr(wrapped, "__code__", None), "co_filename", None) == contextlib.__file__:
        return _asynchronous_context_manager if inspect.isasyncgenfunction(body) else _context_manager
    if inspect.isasyncgenfunction(wrapped):
        return _asynchronous_generator
    if inspect.iscoroutinefunction(wrapped):
        return _coroutine
    if inspect.isgeneratorfunction(wrapped):
        return _generator
    return _function


def _tell(faults: Faults, target: str, observer: Observer | None, call: Call) -> None:
    if observer is None:
        return
    try:
        observer(call)
    except Exception as error:  # noqa: BLE001 - an observer's mistake is not the user's
        faults.report(target, error)


Enter = Callable[[Any, Any, Any], Call]
Left = Callable[..., Any]


def _function(enter: Enter, left: Left, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    call = enter(instance, args, kwargs)
    try:
        result = wrapped(*call.args, **call.kwargs)
    except BaseException as error:
        left(call, error=error)
        raise
    if inspect.iscoroutine(result):
        return _awaited(left, call, result)  # a plain decorator of a coroutine function
    return left(call, result)


async def _awaited(left: Left, call: Call, coroutine: Any) -> Any:
    try:
        result = await coroutine
    except BaseException as error:
        left(call, error=error)
        raise
    return left(call, result)


def _coroutine(enter: Enter, left: Left, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    async def run() -> Any:
        call = enter(instance, args, kwargs)
        return await _awaited(left, call, wrapped(*call.args, **call.kwargs))

    return run()


def _generator(enter: Enter, left: Left, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    def run() -> Any:
        call = enter(instance, args, kwargs)
        try:
            result = yield from wrapped(*call.args, **call.kwargs)
        except BaseException as error:
            left(call, error=error)
            raise
        left(call, result)
        return result

    return run()


def _context_manager(enter: Enter, left: Left, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    """For functions made by `contextlib.contextmanager`: the body of the `with` is what is bracketed."""

    @contextlib.contextmanager
    def run() -> Any:
        call = enter(instance, args, kwargs)
        try:
            with wrapped(*call.args, **call.kwargs) as value:
                yield value
        except BaseException as error:
            left(call, error=error)
            raise
        left(call, value)

    return run()


def _asynchronous_context_manager(
    enter: Enter, left: Left, wrapped: Any, instance: Any, args: Any, kwargs: Any
) -> Any:
    @contextlib.asynccontextmanager
    async def run() -> Any:
        call = enter(instance, args, kwargs)
        try:
            async with wrapped(*call.args, **call.kwargs) as value:
                yield value
        except BaseException as error:
            left(call, error=error)
            raise
        left(call, value)

    return run()


def _asynchronous_generator(enter: Enter, left: Left, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    around = _Around(functools.partial(enter, instance, args, kwargs), left)
    return asynchronous_generator(lambda: around, lambda: wrapped(*around.call.args, **around.call.kwargs))()


class _Around:
    """The bracket around one watched call."""

    call: Call

    def __init__(self, enter: Callable[[], Call], left: Left) -> None:
        self._enter = enter
        self._left = left

    def begin(self, *, current: bool) -> None:  # noqa: ARG002 - watching makes nothing current
        self.call = self._enter()

    def end(self, failure: BaseException | None) -> None:
        self._left(self.call, error=failure)
