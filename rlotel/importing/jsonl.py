"""Files of JSON lines, each with its time in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rlotel.importing.records import Logged, Losses
from rlotel.logged.lines import parse, split, time_of
from rlotel.logged.tables import Table

SUFFIXES = (".jsonl", ".ndjson")
OF_TUNE = "result.json"
"""What Ray Tune calls its file of JSON lines, in a folder that is named as the trial."""


def is_one(path: Path) -> bool:
    """Whether it is such a file, by its name."""
    return path.suffix in SUFFIXES or path.name == OF_TUNE


def read(path: Path, table: Table, losses: Losses) -> Iterator[Logged]:
    """The lines of a file that have a time; what cannot be read goes to `losses`."""
    with path.open("rb") as file:
        for line in file:
            if not line.strip():
                continue
            values = parse(line)
            when = None if values is None else time_of(values, table.time)
            if values is None:
                losses.lines += 1
            elif when is None:
                losses.untimed += 1
            else:
                bare, step = split(values, table.step)
                yield Logged(when, bare, step)
