"""Where panels go: rows that are always full, on a grid of 48 columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlotel.render.dashboard import Dashboard, Panel, Section

COLUMNS = 48
HEADER_HEIGHT = 4
TEXT_HEIGHT = 6
_HEIGHTS = {"number": 8, "line": 16, "stack": 16, "table": 20}
_IN_A_ROW = {"number": 4, "line": 3, "stack": 3, "table": 1}


@dataclass(frozen=True)
class Tile:
    """A rectangle of the grid, with a panel, the header of a section, or (neither) the opening sentence."""

    x: int
    y: int
    width: int
    height: int
    panel: Panel | None = None
    section: Section | None = None


def place(dashboard: Dashboard, *, google: bool) -> list[Tile]:
    """Every tile of a dashboard, from the top; `google` says whether metrics that only Google Cloud has go in."""
    tiles = [Tile(0, 0, COLUMNS, TEXT_HEIGHT)]
    y = TEXT_HEIGHT
    for section in dashboard.sections:
        panels = [panel for panel in section.panels if google or not panel.google_only]
        if not panels:
            continue
        tiles.append(Tile(0, y, COLUMNS, HEADER_HEIGHT, section=section))
        y += HEADER_HEIGHT
        for row in _rows(panels):
            width, height = COLUMNS // len(row), _HEIGHTS[row[0].draw]
            tiles += [Tile(place * width, y, width, height, panel) for place, panel in enumerate(row)]
            y += height
    return tiles


def _rows(panels: Sequence[Panel]) -> Iterator[Sequence[Panel]]:
    start = 0
    while start < len(panels):
        most = _IN_A_ROW[panels[start].draw]
        end = start
        while end < len(panels) and _HEIGHTS[panels[end].draw] == _HEIGHTS[panels[start].draw]:
            end += 1
        for length in _lengths(end - start, most):
            yield panels[start : start + length]
            start += length


def _lengths(count: int, most: int) -> list[int]:
    """How long the rows are: as equal as can be, so that no panel is left alone in one."""
    rows = -(-count // most)
    return [count // rows + (row < count % rows) for row in range(rows)]
