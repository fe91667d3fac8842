"""What is done before a module is imported, and after: once for each, in whichever thread imports it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType

import wrapt

Before = Callable[[], None]
After = Callable[[ModuleType], None]

_before: dict[str, list[Before]] = {}
_after: dict[str, list[After]] = {}
"""One hook a module for all sessions: wrapt's can't be taken back."""


class _Finder:
    """Asked first for every module, and never has it: what comes before an import is done as it is looked for."""

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None) -> None:
        """What the import system calls."""
        for do in _before.pop(name, ()):
            do()


_FINDER = _Finder()


def importable(name: str) -> bool:
    """Whether there is such a module; one without a dot is not imported for that."""
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # one that somebody made and put there
        return name in sys.modules


def before(module: str, do: Before) -> Callable[[], None]:
    """Do something, which must not raise, before `module` is executed; at once if it was already.

    Returns:
        What waits for it no more.
    """
    if module in sys.modules:
        do()
        return _nothing
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    _before.setdefault(module, []).append(do)
    return partial(_forget, _before, module, do)


def after(module: str, do: After) -> Callable[[], None]:
    """Do something, which must not raise, with `module` once it is executed; at once if it was already.

    Returns:
        What waits for it no more.
    """
    if module in sys.modules:
        do(sys.modules[module])
        return _nothing
    if module not in _after:
        _after[module] = []
        wrapt.register_post_import_hook(partial(_imported, module), module)
    _after[module].append(do)
    return partial(_forget, _after, module, do)


def _imported(module: str, found: ModuleType) -> None:
    for do in _after.pop(module, ()):
        do(found)


def _forget(waiting: dict[str, list[Callable[..., None]]], module: str, do: Callable[..., None]) -> None:
    if do in waiting.get(module, ()):
        waiting[module].remove(do)


def _nothing() -> None:
    """There is nothing to wait for."""
