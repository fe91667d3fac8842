"""Watching other people's functions, and letting go of them again. The only place that wraps anything.

An integration gives observers and transforms, never wrappers: it can't forget to re-raise, because it never holds
the call. The user's function runs once, with its own result and its own exception, whatever happens to ours.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, MutableMapping
from types import ModuleType
from typing import Any

from rlotel import modules
from rlotel.errors import Faults
from rlotel.watched import Place, Watched, place_of
from rlotel.watching import Call, Observer, Watch, bracket

__all__ = ["Call", "Observer", "Patches", "import_target"]


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
        self._undo.append(functools.partial(_restore, Place(owner, name, original, inherited), value))

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
        place = Place(owner, name, original, inherited)
        # Undone or not: where someone has wrapped it after us, ours must stay, and then does nothing.
        wrapper = Watched(
            watched,
            bracket(self._faults, target, watch, function if under is None else watched),
            target,
            enabled=lambda: self._open and not place.left,
            place=place,
        )
        if under is not None:
            wrapper = import_target(under)(wrapper)
        setattr(owner, name, wrapper)
        self._undo.append(functools.partial(_restore, place, wrapper))


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
    if not isinstance(owner, type):
        return getattr(owner, name), True  # a module's attribute may be made as it is asked for
    for base in owner.__mro__:
        if name in vars(base):
            return vars(base)[name], True
    # Not what its metaclass has: put into the class it would no longer get the class it is called on.
    raise AttributeError(f"{owner.__qualname__} has no {name}")


def _restore(place: Place, ours: object) -> None:
    place.left = True
    if getattr(place.owner, "__dict__", {}).get(place.name) is not ours:
        return  # someone wrapped it again: taking ours out from under theirs would break both
    original, inherited = place.original, place.inherited
    while isinstance(original, Watched) and (under := place_of(original)).left:
        original, inherited = under.original, under.inherited  # it had to stay under ours
    if inherited:
        delattr(place.owner, place.name)
    else:
        setattr(place.owner, place.name, original)


def import_target(target: str) -> Any:
    """The object that `package.module:path` names.

    Raises:
        ImportError: there is no such module.
        AttributeError: the module has no such attribute.
    """
    module, _, path = target.partition(":")
    return functools.reduce(getattr, path.split("."), importlib.import_module(module))
