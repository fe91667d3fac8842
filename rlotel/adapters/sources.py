"""What can be followed, and how each is told from the other."""

from __future__ import annotations

import difflib
import functools
import os
import stat
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rlotel.adapters import file, function, mlflow, tensorboard, wandb
from rlotel.adapters.log import Log
from rlotel.errors import SettingError
from rlotel.logged.tables import Table
from rlotel.modules import importable
from rlotel.patching import Patches
from rlotel.recorder import Recorder

Connect = Callable[[Patches, Log, Table, Recorder], None]

_PACKAGES: dict[str, tuple[Callable[[Patches, Log], None], tuple[str, ...]]] = {
    "wandb": (wandb.connect, ("wandb",)),
    "tensorboard": (tensorboard.connect, ("torch", "tensorboardX")),
    "mlflow": (mlflow.connect, ("mlflow",)),
}
"""Loggers by name, and the packages of which one must be there."""


def source_of(source: str | os.PathLike[str]) -> tuple[str, Connect]:
    """The name of a source, and what begins to follow it.

    Raises:
        SettingError: there is no such source, or it is not installed.
    """
    if isinstance(source, str) and source in _PACKAGES:
        connect, packages = _PACKAGES[source]
        if not any(map(importable, packages)):
            raise SettingError(
                "source", f"{source} is to be followed, but {' or '.join(packages)} is not installed"
            )
        return source, lambda patches, log, _table, _recorder: connect(patches, log)
    if isinstance(source, str) and _is_target(source):
        _check_target(source)
        return source, lambda patches, log, _table, _recorder: function.connect(patches, log, source)
    if isinstance(source, os.PathLike) or (isinstance(source, str) and Path(source).suffix):
        path = _checked(Path(source))
        return str(path), partial(_follow_file, path)
    near = difflib.get_close_matches(str(source), _PACKAGES, n=1, cutoff=0.75)
    hint = f"; did you mean {near[0]!r}? There" if near else ": there"
    raise SettingError(
        "source",
        f"{source!r} can't be followed{hint} are {', '.join(_PACKAGES)}, functions as package.module:Class.method "
        "and paths of files of JSON lines",
    )


def _follow_file(path: Path, patches: Patches, log: Log, table: Table, recorder: Recorder) -> None:
    file.connect(patches, log, path, table, recorder)


def _checked(path: Path) -> Path:
    try:
        path = path.expanduser()
        kind = path.stat().st_mode
    except FileNotFoundError:
        return path  # it will be written
    except (OSError, RuntimeError, ValueError) as error:
        raise SettingError("source", f"{path} can't be read: {error}") from error
    if stat.S_ISDIR(kind):
        raise SettingError("source", f"{path} is a folder: give the file of JSON lines in it")
    if not stat.S_ISREG(kind):
        raise SettingError("source", f"{path} is no file: give one of JSON lines")
    return path


def _check_target(source: str) -> None:
    """What is there already is looked at; what is imported later can't be."""
    module, _, path = source.partition(":")
    package = module.partition(".")[0]
    if not importable(package):
        raise SettingError("source", f"{source} is to be followed, but there is no module {package}")
    found: object = sys.modules.get(module)
    try:
        found = found and functools.reduce(getattr, path.split("."), found)
    except AttributeError as error:
        raise SettingError(
            "source", f"{error}. If {path} is defined further down, call follow() after that"
        ) from error
    if found is not None and (isinstance(found, type) or not callable(found)):
        raise SettingError("source", f"{source} is a {type(found).__name__}: only functions can be followed")


def _is_target(source: str) -> bool:
    module, colon, name = source.partition(":")
    parts = [*module.split("."), *name.split(".")]
    return bool(colon) and all(part.isidentifier() for part in parts)
