"""Watching other people's functions, and letting go of them again. The only place that wraps anything.

An integration gives observers and transforms, never wrappers: it can't forget to re-raise, because it never holds
the call. The user's function runs once, with its own result and its own exception, whatever happens to ours.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import operator
import pkgutil
from collections.abc import Callable, MutableMapping
from types import ModuleType
from typing import Any

import wrapt

from rlotel import modules
from rlotel.errors import Faults
from rlotel.watching import Call, Observer, Watch, bracket

__all__ = ["Call", "Observer", "Patches", "import_target"]


class _BoundWatched(wrapt.BoundFunctionWrapper):  # type: ignore[type-arg]  # not generic in wrapt 1.16
    """A watched method of an object; pickled and copied as that method, as any method is."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not args and kwargs and self._self_instance is None:
            # Asked of the class, with `self` by name: wrapt finds no instance then, and before 1.17 it raises.
            first = next(iter(inspect.signature(self.__wrapped__).parameters), None)
            if first in kwargs:
                args = (kwargs.pop(first),)
        return super().__call__(*args, **kwargs)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        instance = getattr(self, "__self__", None)
        return self if instance is None else getattr(copy.deepcopy(instance, memo), self.__name__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        instance = getattr(self, "__self__", None)
        if instance is None:  # asked of the class
            return self._self_parent.__reduce_ex__(protocol)
        return getattr, (instance, self.__name__)


class _Watched(wrapt.FunctionWrapper):  # type: ignore[type-arg]
    """A watched function; pickled by its name, or by value as the function it is if it has none elsewhere.

    Whoever unpickles it (an actor's class carries the functions it uses) need not have rlotel. A copy is itself.
    """

    __bound_function_wrapper__ = _BoundWatched

    def __init__(self, wrapped: Any, wrapper: Any, target: str, enabled: Callable[[], bool]) -> None:
        super().__init__(wrapped, wrapper, enabled=enabled)
        self._self_target = target
        self._self_of_class: Any = None

    def __get__(self, instance: Any, owner: Any = None, /) -> Any:
        if instance is not None or isinstance(self.__wrapped__, (classmethod, staticmethod)):
            return super().__get__(instance, owner)
        # The same each time: what is not, cloudpickle takes for a copy, which it sends by value and not by name.
        # So Ray would send the methods of an actor's class without those who watch them over there.
        if self._self_of_class is None:
            self._self_of_class = super().__get__(None, owner)
        return self._self_of_class

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, _memo: object) -> Any:
        return self

    def __reduce_ex__(self, _protocol: Any) -> Any:
        if self._self_target.startswith("__main__:") or "<locals>" in self._self_target:
            return operator.itemgetter(0), ((self.__wrapped__,),)
        return pkgutil.resolve_name, (self._self_target,)


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
        result: Callable[[Call], Any] | None = None,
        under: str | None = None,
        optional: bool = False,
    ) -> None:
        """Watch `package.module:name` or `package.module:Class.method`, now or when its module is imported.

        Functions, coroutine functions, generators, asynchronous generators and context managers are bracketed as
        they run: `before` as the body starts, `after` as it has ended. A target that the module does not have is
        reported as a fault unless it is `optional`, as is one that is no function; nothing else is touched.

        `under` names a decorator of the function that looks at who calls it, and so must stay the outermost: what
        it decorates is watched, and decorated again. Observers then find the object among the arguments.
        """
        module, _, path = target.partition(":")
        watch = Watch(before, after, failed, change, result)

        def wrap(found: ModuleType) -> None:
            with self._faults.contain(f"watch {target}"):
                if not (optional and _lacks(found, path)):
                    self._wrap(found, path, target, watch, under)

        self._undo.append(modules.after(module, wrap))

    def watch_method(
        self,
        kind: type,
        name: str,
        *,
        before: Observer | None = None,
        after: Observer | None = None,
        failed: Observer | None = None,
    ) -> Callable[[], None]:
        """Watch a method of a class that was met only now, such as that of a user's environment.

        On all its objects: observers tell them apart by `call.instance`. A method that the class does not have is
        reported as a fault.

        Returns:
            What lets go of it before the session ends.
        """
        target = f"{kind.__module__}:{kind.__qualname__}.{name}"
        known = len(self._undo)
        with self._faults.contain(f"watch {target}"):
            self._put(kind, name, target, Watch(before, after, failed), None)
        put = self._undo[known:]

        def let_go() -> None:
            for undo in put:
                if undo in self._undo:
                    self._undo.remove(undo)
                    undo()

        return let_go

    def before_import(self, module: str, do: Callable[[], None]) -> None:
        """Do something before `module` is executed for the first time, or now if it was already; contained."""

        def done() -> None:
            with self._faults.contain(f"before {module} is imported"):
                do()

        self._undo.append(modules.before(module, done))

    def replace(self, owner: Any, name: str, value: object) -> None:
        """Set an attribute until `undo`, unless someone else has set it again by then."""
        original, inherited = _find(owner, name)
        setattr(owner, name, value)
        self._undo.append(functools.partial(_restore, owner, name, value, original, inherited))

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

    def when_undone(self, undo: Callable[[], None]) -> None:
        """Call this, too, to put things back."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Put every original back, and wait no more for modules that were never imported."""
        self._open = False
        while self._undo:
            with self._faults.contain("uninstrument"):
                self._undo.pop()()

    def _wrap(self, module: ModuleType, path: str, target: str, watch: Watch, under: str | None) -> None:
        if not self._open:
            return
        *owners, name = path.split(".")
        self._put(functools.reduce(getattr, owners, module), name, target, watch, under)

    def _put(self, owner: Any, name: str, target: str, watch: Watch, under: str | None) -> None:
        original, inherited = _find(owner, name)
        function = original.__func__ if isinstance(original, (classmethod, staticmethod)) else original
        if isinstance(function, type) or not callable(function):
            raise TypeError(f"{target} is a {type(function).__name__}: only functions and methods are watched")
        watched: Any = original if under is None else vars(function)["__wrapped__"]
        # Undone or not: where someone has wrapped it after us, ours must stay, and then does nothing.
        wrapper = _Watched(
            watched,
            bracket(self._faults, target, watch, function if under is None else watched),
            target,
            enabled=lambda: self._open,
        )
        if under is not None:
            wrapper = import_target(under)(wrapper)
        setattr(owner, name, wrapper)
        self._undo.append(functools.partial(_restore, owner, name, wrapper, original, inherited))


def _lacks(module: ModuleType, path: str) -> bool:
    """Whether a module of another version has no such thing."""
    found: Any = module
    for name in path.split("."):
        if not hasattr(found, name):
            return True
        found = getattr(found, name)
    return False


def _find(owner: Any, name: str) -> tuple[Any, bool]:
    """An attribute as it is stored (a classmethod, not its bound method), and whether it is from a base class."""
    own = getattr(owner, "__dict__", {})
    if name in own:
        return own[name], False
    # A module's attribute may be made as it is asked for.
    return inspect.getattr_static(owner, name) if isinstance(owner, type) else getattr(owner, name), True


def _restore(owner: Any, name: str, wrapper: object, original: object, inherited: bool) -> None:
    if getattr(owner, "__dict__", {}).get(name) is not wrapper:
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
