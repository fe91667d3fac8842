"""What a user may choose when rendering: the iteration time, which runs, where the runbooks are published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlotel.render.windows import Windows

if TYPE_CHECKING:
    from rlotel.render.selection import Matcher


@dataclass(frozen=True)
class Options:
    """The choices; the defaults are those of the committed files."""

    windows: Windows = field(default_factory=Windows)
    matchers: tuple[Matcher, ...] = ()
    """Put into every query on metrics of a run."""
    runbooks: str | None = None
    """The URL of a folder with the runbooks, without a slash at its end."""
