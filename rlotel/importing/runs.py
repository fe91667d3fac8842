"""The runs at a path, of whatever format, and what each of them logged, in order of time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

from rlotel.importing import jsonl, tensorboard, wandb
from rlotel.importing.records import Logged, Losses, Run, Unreadable
from rlotel.logged.tables import Table


def find(path: Path) -> list[Run]:
    """The runs at a path: one for a file, for a folder those that are in it.

    Raises:
        Unreadable: there is none.
    """
    if path.is_file():
        return [_of_file(path)]
    if not path.is_dir():
        raise Unreadable(f"{path}: there is no such file or folder")
    files = sorted(found for found in path.rglob("*") if found.is_file() and not found.is_symlink())
    events = [found for found in files if tensorboard.MARK in found.name]
    runs = _resumed([_of_file(found) for found in files if found.suffix == wandb.SUFFIX])
    runs += _of_events(events, path)
    # W&B and others write JSON lines of their own beside their files.
    runs = runs or [_of_lines(found, path) for found in files if jsonl.is_one(found)]
    if not runs:
        raise Unreadable(
            f"{path} has no TensorBoard event files, no W&B offline runs (*.wandb) and no *.jsonl in it"
        )
    return runs


def read(run: Run, table: Table, losses: Losses) -> Iterator[Logged]:
    """What a run logged; `losses` gets what cannot be read.

    Raises:
        Unreadable: a file is not what its name says.
    """
    return heapq.merge(*(_read(file, run, table, losses) for file in run.files), key=attrgetter("time"))


def _read(file: Path, run: Run, table: Table, losses: Losses) -> Iterator[Logged]:
    if run.kind == "wandb":
        return wandb.read(file, losses)
    if run.kind == "jsonl":
        return jsonl.read(file, table, losses)
    return tensorboard.read(file, _within(file, run.folder), losses)


def _of_file(path: Path) -> Run:
    if path.suffix == wandb.SUFFIX:
        return Run(wandb.run_id(path) or path.stem, "wandb", (path,), path.parent)
    if tensorboard.MARK in path.name:
        return Run(path.resolve().parent.name, "tensorboard", (path,), path.parent)
    if jsonl.is_one(path):
        name = path.resolve().parent.name if path.name == jsonl.OF_TUNE else path.stem
        return Run(name, "jsonl", (path,), path.parent)
    lines = ", ".join(f"*{suffix}" for suffix in jsonl.SUFFIXES)
    raise Unreadable(
        f"{path} can't be imported: it is none of {lines}, {jsonl.OF_TUNE} (JSON lines), *{wandb.SUFFIX} "
        f"(W&B offline) and *{tensorboard.MARK}* (TensorBoard)"
    )


def _of_lines(path: Path, within: Path) -> Run:
    """Named by where it is: loggers give their files of all runs the same name."""
    own = _of_file(path)
    folder = "" if path.parent == within else path.parent.relative_to(within).as_posix()
    if path.name == jsonl.OF_TUNE:
        return replace(own, name=folder or own.name)
    return replace(own, name=f"{folder}/{own.name}" if folder else own.name)


def _resumed(runs: list[Run]) -> list[Run]:
    """Those of one id are one run, which was resumed."""
    found: dict[str, Run] = {}
    for run in runs:
        first = found.setdefault(run.name, run)
        if first is not run:
            found[run.name] = replace(first, files=(*first.files, *run.files))
    return list(found.values())


def _of_events(files: list[Path], within: Path) -> list[Run]:
    """A folder with event files is a run; those below it are parts of it, as `add_scalars` makes them."""
    folders: dict[Path, list[Path]] = {}
    for file in sorted(files, key=lambda file: (len(file.parts), file)):
        above = next((folder for folder in folders if folder in file.parents), file.parent)
        folders.setdefault(above, []).append(file)
    return [Run(_name(folder, within), "tensorboard", tuple(found), folder) for folder, found in folders.items()]


def _name(folder: Path, within: Path) -> str:
    return folder.resolve().name if folder == within else folder.relative_to(within).as_posix()


def _within(file: Path, folder: Path) -> str:
    """Where a file's folder is in its run's; empty for that itself."""
    return "" if file.parent == folder else file.parent.relative_to(folder).as_posix()
