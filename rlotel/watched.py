"""A watched function, which behaves as the one it wraps: also as it is bound, pickled, copied or asked about."""

from __future__ import annotations

import copy
import inspect
import operator
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import wrapt


class _BoundWatched(wrapt.BoundFunctionWrapper):  # type: ignore[type-arg]  # not generic in wrapt 1.16
    """A watched method of an object; pickled and copied as that method, as any method is."""

    # As in Python. A subclass of wrapt's asks for what is not there twice, and if that is watched as well, each of
    # the two twice again: a function that was watched 30 times would take minutes for a call.
    __getattribute__ = object.__getattribute__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not args and kwargs and self._self_instance is None:
            # Asked of the class, with `self` by name: wrapt finds no instance then, and before 1.17 it raises.
            first = _name_of_self(self._self_parent.__wrapped__, self.__wrapped__)
            if first in kwargs:
                args = (kwargs.pop(first),)
        return super().__call__(*args, **kwargs)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        instance = getattr(self, "__self__", None)
        if instance is None or isinstance(instance, type):
            return self
        copied = copy.deepcopy(instance, memo)  # its method may have a name that its class alone knows
        return self._self_parent.__get__(copied, type(copied))

    def __reduce_ex__(self, protocol: Any) -> Any:
        instance = getattr(self, "__self__", None)
        if instance is None:  # asked of the class
            return self._self_parent.__reduce_ex__(protocol)
        return getattr, (instance, self.__name__)


@dataclass
class Place:
    """Where a watched function was put."""

    owner: Any
    name: str
    original: Any
    """What was there before."""
    inherited: bool
    """Whether that is from a base class."""
    left: bool = False
    """Whether it is watched no more."""


class Watched(wrapt.FunctionWrapper):  # type: ignore[type-arg]
    """A watched function; pickled by its name, or by value as the function it is if it has none elsewhere.

    Whoever unpickles it (an actor's class carries the functions it uses) need not have rlotel. A copy is itself.
    """

    __bound_function_wrapper__ = _BoundWatched
    __getattribute__ = object.__getattribute__

    def __init__(self, wrapped: Any, wrapper: Any, target: str, enabled: Callable[[], bool], place: Place) -> None:
        super().__init__(wrapped, wrapper, enabled=enabled)
        self._self_target = target
        self._self_place = place
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
        # cloudpickle takes a function of the program for what it is, before it asks; pickle wants its name.
        of_program = self._self_target.startswith("__main__:") and type(self.__wrapped__) is not FunctionType
        if of_program or "<locals>" in self._self_target:
            return operator.itemgetter(0), ((self.__wrapped__,),)
        return pkgutil.resolve_name, (self._self_target,)


def place_of(watched: Watched) -> Place:
    """Where it was put."""
    return watched._self_place  # noqa: SLF001 - of this module


def _name_of_self(stored: object, function: Any) -> str | None:
    """By which keyword a method takes its object; None if it does not."""
    if isinstance(stored, (classmethod, staticmethod)):
        return None
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except (TypeError, ValueError):  # builtins need not say
        return None
    return first.name if first is not None and first.kind is first.POSITIONAL_OR_KEYWORD else None
