"""Calls of tasks and actors carry the loop or phase they are made in; what is done in them joins its trace.

Actor methods have a place for it in Ray itself: the argument `_ray_trace_ctx`, which a worker without rlotel
drops. Functions get the same place from us, in the copy that Ray sends to the workers.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import AsyncIterator, Callable, Generator
from inspect import Parameter
from typing import Any

from rlotel import carrier
from rlotel.carrier import Arrival
from rlotel.patching import Call, Patches
from rlotel.recorder import Recorder

CARRIER = "_ray_trace_ctx"

_SLOT = Parameter(CARRIER, Parameter.KEYWORD_ONLY, default=None)


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch where arguments are packed, and where they are unpacked."""
    sender = _Sender(recorder)
    for module in ("ray._common.signature", "ray._private.signature"):  # the latter up to Ray 2.46
        patches.watch(f"{module}:flatten_args", after=sender.packed, optional=True)
    patches.watch("ray.remote_function:_inject_tracing_into_function", result=lambda call: with_slot(call.result))
    patches.watch(
        "ray._private.function_manager:FunctionActorManager._make_actor_method_executor", result=_receiving
    )


class _Sender:
    """Puts the carrier beside the arguments."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._identity: str | None = None

    def packed(self, call: Call) -> None:
        """A call's arguments were made into the list that is sent: names and values in turn."""
        parameters, _, keywords = call.args
        if CARRIER in keywords or not any(parameter.name == CARRIER for parameter in parameters[-2:]):
            return  # Ray's own tracing is on, or this is something that could not be given one
        if self._identity is None and self._recorder.identity.frozen:
            self._identity = json.dumps(dict(self._recorder.identity.freeze()))
        found = carrier.outgoing(self._recorder.around(), self._identity)
        if found is not None:
            call.result.extend((CARRIER, found))


def with_slot(function: Any) -> Any:
    """A remote function that also takes a carrier. It is sent by value, and needs no rlotel where it runs."""
    if not inspect.isfunction(function) or CARRIER in (parameters := inspect.signature(function).parameters):
        return function

    @functools.wraps(function)
    def call(*args: Any, _ray_trace_ctx: Any = None, **kwargs: Any) -> Any:
        here = sys.modules.get("rlotel.integrations.ray.calls") if _ray_trace_ctx is not None else None
        if here is None:
            return function(*args, **kwargs)
        return here.received(function, function, _ray_trace_ctx, args, kwargs)

    last = [parameter for parameter in parameters.values() if parameter.kind is Parameter.VAR_KEYWORD]
    first = [parameter for parameter in parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
    call.__signature__ = inspect.Signature([*first, _SLOT, *last])  # type: ignore[attr-defined]
    return call


def _receiving(call: Call) -> Any:
    """What executes one method of an actor, as Ray made it, in the context that each call brings."""
    execute, method = call.result, call.arguments["method"]

    @functools.wraps(execute)
    def executed(*args: Any, **kwargs: Any) -> Any:
        # Ray takes the carrier out of the arguments itself, further in.
        found = kwargs.get(CARRIER)
        return execute(*args, **kwargs) if found is None else received(execute, method, found, args, kwargs)

    return executed


def received(
    function: Callable[..., Any], kind: Any, found: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a function in the context that its caller sent; `kind` tells a coroutine function and the like."""
    if inspect.iscoroutinefunction(kind):
        return _coroutine(function, found, args, kwargs)
    if inspect.isasyncgenfunction(kind):
        return _asynchronous_generator(function, found, args, kwargs)
    if inspect.isgeneratorfunction(kind):
        return _generator(function, found, args, kwargs)
    with Arrival(found):
        return function(*args, **kwargs)


async def _coroutine(function: Callable[..., Any], found: object, args: Any, kwargs: Any) -> Any:
    with Arrival(found):
        return await function(*args, **kwargs)


def _generator(function: Callable[..., Any], found: object, args: Any, kwargs: Any) -> Generator[Any, Any, Any]:
    # Between two items only Ray runs here.
    with Arrival(found):
        return (yield from function(*args, **kwargs))


async def _asynchronous_generator(
    function: Callable[..., Any], found: object, args: Any, kwargs: Any
) -> AsyncIterator[Any]:
    items = function(*args, **kwargs)
    with Arrival(found):
        try:
            async for item in items:
                yield item
        finally:
            await items.aclose()
