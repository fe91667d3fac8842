"""Watching other people's functions, and letting go of them again. The only place that wraps anything.

An integration gives observers and transforms, never wrappers: it can't forget to re-raise, because it never holds
the call. The user's function runs once, with its own result and its own exception, whatever happens to ours.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import wrapt

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


class Patches:
    """Everything one session has watched, to be undone together in reverse order."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._undo: list[Callable[[], None]] = []
        self._open = True

    def watch(
        self,
        target: str,
        *,
        before: Observer | None = None,
        after: Observer | None = None,
        failed: Observer | None = None,
        change: Callable[[Call], tuple[tuple[Any, ...], dict[str, Any]]] | None = None,
    ) -> None:
        """Watch `package.module:name` or `package.module:Class.method`, now or when its module is imported.

        Functions, coroutine functions, generators, asynchronous generators and context managers are bracketed as
        they run: `before` as the body starts, `after` as it has ended. A target that the module does not have is
        reported as a fault; nothing else is touched.
        """
        module, _, path = target.partition(":")
        watch = Watch(before, after, failed, change)
        if module in sys.modules:
            self._wrap(sys.modules[module], path, target, watch)
        else:
            wrapt.register_post_import_hook(lambda found: self._wrap(found, path, target, watch), module)

    def replace(self, owner: Any, name: str, value: object) -> None:
        """Set an attribute until `undo`, unless someone else has set it again by then."""
        original = getattr(owner, name)
        setattr(owner, name, value)

        def undo() -> None:
            if getattr(owner, name, None) is value:
                setattr(owner, name, original)

        self._undo.append(undo)

    def set_item(self, mapping: MutableMapping[str, str], key: str, value: str) -> None:
        """Set an item, such as a variable for child processes, until `undo`."""
        before = mapping.get(key)
        mapping[key] = value

        def undo() -> None:
            if mapping.get(key) == value:
                if before is None:
                    del mapping[key]
                else:
                    mapping[key] = before

        self._undo.append(undo)

    def undo(self) -> None:
        """Put every original back; hooks of modules that were never imported do nothing from now on."""
        self._open = False
        while self._undo:
            with self._faults.contain("uninstrument"):
                self._undo.pop()()

    def _wrap(self, module: ModuleType, path: str, target: str, watch: Watch) -> None:
        if not self._open:
            return
        with self._faults.contain(f"watch {target}"):
            *owners, name = path.split(".")
            owner: Any = functools.reduce(getattr, owners, module)
            inherited = name not in vars(owner)
            original = vars(owner).get(name, None) if not inherited else getattr(owner, name)
            function = original.__func__ if isinstance(original, (classmethod, staticmethod)) else original
            wrapper = wrapt.FunctionWrapper(original, _bracket(self._faults, target, watch, function))
            setattr(owner, name, wrapper)
            self._undo.append(functools.partial(_restore, owner, name, wrapper, original, inherited))


def _restore(owner: Any, name: str, wrapper: object, original: object, inherited: bool) -> None:
    if vars(owner).get(name) is not wrapper:
        return  # someone wrapped it again: taking ours out from under theirs would break both
    if inherited:
        delattr(owner, name)
    else:
        setattr(owner, name, original)


def import_target(target: str) -> Any:
    """The object that `package.module:path` names.

    Raises:
        ImportError: there is no such module.
        AttributeError: the module has no such attribute.
    """
    module, _, path = target.partition(":")
    return functools.reduce(getattr, path.split("."), importlib.import_module(module))


def _bracket(faults: Faults, target: str, watch: Watch, wrapped: Any) -> Callable[..., Any]:
    """The wrapper that fits what the function is."""
    function = inspect.unwrap(wrapped)
    try:
        signature: inspect.Signature | None = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None  # builtins need not say

    def enter(instance: Any, args: Any, kwargs: Any) -> Call:
        call = Call(instance, args, kwargs, signature)
        with faults.contain(target):
            if watch.change is not None:
                call.args, call.kwargs = watch.change(call)
        _tell(faults, target, watch.before, call)
        return call

    def left(call: Call, result: Any = None, error: BaseException | None = None) -> None:
        call.result, call.error = result, error
        _tell(faults, target, watch.after if error is None else watch.failed, call)

    if getattr(getattr(wrapped, "__code__", None), "co_filename", None) == contextlib.__file__:
        return functools.partial(_context_manager, enter, left)
    if inspect.isasyncgenfunction(function):
        return functools.partial(_asynchronous_generator, enter, left)
    if inspect.iscoroutinefunction(function):
        return functools.partial(_coroutine, enter, left)
    if inspect.isgeneratorfunction(function):
        return functools.partial(_generator, enter, left)
    return functools.partial(_function, enter, left)


def _tell(faults: Faults, target: str, observer: Observer | None, call: Call) -> None:
    if observer is None:
        return
    try:
        observer(call)
    except Exception as error:  # noqa: BLE001 - an observer's mistake is not the user's
        faults.report(target, error)


Enter = Callable[[Any, Any, Any], Call]
Left = Callable[..., None]


def _function(enter: Enter, left: Left, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    call = enter(instance, args, kwargs)
    try:
        result = wrapped(*call.args, **call.kwargs)
    except BaseException as error:
        left(call, error=error)
        raise
    left(call, result)
    return result


def _coroutine(enter: Enter, left: Left, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    async def run() -> Any:
        call = enter(instance, args, kwargs)
        try:
            result = await wrapped(*call.args, **call.kwargs)
        except BaseException as error:
            left(call, error=error)
            raise
        left(call, result)
        return result

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


def _asynchronous_generator(enter: Enter, left: Left, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    async def run() -> Any:
        call = enter(instance, args, kwargs)
        items = wrapped(*call.args, **call.kwargs)
        try:
            async for item in items:
                yield item
        except BaseException as error:
            left(call, error=error)
            raise
        finally:
            await items.aclose()
        left(call)

    return run()
