"""What the readers of all formats give: what was logged, when, and for which step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class Unreadable(Exception):
    """A file is not what its name says, or holds nothing to import."""


@dataclass(frozen=True)
class Logged:
    """What one call of a logger wrote."""

    time: float
    """Seconds since 1970."""
    values: Mapping[str, Any]
    step: object = None
    """The logger's own step."""
    whole: bool = False
    """Whether that is all of the step."""


@dataclass(frozen=True)
class Run:
    """One run on a disk."""

    name: str
    kind: str
    """jsonl, tensorboard or wandb."""
    files: tuple[Path, ...]
    folder: Path
    """What their paths are relative to."""
    system: str | None = None


@dataclass
class Losses:
    """What of the files could not be read."""

    lines: int = 0
    """Lines or records that are none."""
    untimed: int = 0
    """Those without a time."""
    ahead: int = 0
    """Those with one that is still to come."""
    torn: list[str] = field(default_factory=list)
    """Files that break off: what is behind that was not read."""
