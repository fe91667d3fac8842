"""Instrument a framework and let go of it again: everything in its modules must be what it was.

Usage: python undoing.py FRAMEWORK MODULE...
"""

import importlib
import sys
from types import ModuleType
from typing import Any

import rlotel


def contents(names: list[str]) -> dict[tuple[str, ...], Any]:
    """Every attribute of the modules that are loaded of these packages, and of their classes."""
    packages = {name.partition(".")[0] for name in names}
    found: dict[tuple[str, ...], Any] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in packages or not isinstance(module, ModuleType):
            continue
        for key, value in list(vars(module).items()):
            found[name, key] = value
            if isinstance(value, type) and value.__module__ == name:
                found.update({(name, key, part): inner for part, inner in list(vars(value).items())})
    return found


def different(before: dict[tuple[str, ...], Any], after: dict[tuple[str, ...], Any]) -> set[tuple[str, ...]]:
    """What is no longer the very same object. Modules that were loaded meanwhile are not compared."""
    return {key for key in before if before[key] is not after.get(key)}


def main(framework: str, *modules: str) -> None:
    """Compare.

    Raises:
        SystemExit: something was not put back, or nothing had been watched.
    """
    names = list(modules)
    for name in names:
        importlib.import_module(name)
    before = contents(names)
    rlotel.instrument(frameworks=[framework], capture="captured.jsonl")
    watched = different(before, contents(names))
    rlotel.uninstrument()
    left = different(before, contents(names))
    missed = set(names) - {key[0] for key in watched}
    if missed:
        raise SystemExit(f"nothing is watched in {sorted(missed)}; watched: {sorted(watched)}")
    if left:
        raise SystemExit(f"not put back: {sorted(left)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
