"""Sparklines and bars out of block characters, as wide as the place they are put in."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

_RISING = "▁▂▃▄▅▆▇█"
_FILLING = " ▏▎▍▌▋▊▉"
_FULL = "█"
_GAP = "·"


def sparkline(
    values: Sequence[float | None], width: int, floor: float | None = None, top: float | None = None
) -> str:
    """A line of at most `width` characters, one for each value or, where there are more, for the mean of some.

    Args:
        values: from old to new; None leaves a dot.
        width: characters.
        floor: what the lowest block stands for, if that is less than the lowest value.
        top: what the highest block stands for, if that is more than the highest value.
    """
    width = min(width, len(values))
    edges = [len(values) * place // width for place in range(width + 1)] if width else []
    cells: list[float | None] = []
    for begin, end in pairwise(edges):
        known = [value for value in values[begin:end] if value is not None]
        # A gap that means would hide is what one looks for, so it wins.
        cells.append(sum(known) / len(known) if len(known) == end - begin else None)
    known = [cell for cell in cells if cell is not None]
    if not known:
        return _GAP * width
    low = min(known if floor is None else [*known, floor])
    span = max(known if top is None else [*known, top]) - low
    highest = len(_RISING) - 1
    return "".join(
        _GAP if cell is None else _RISING[round((cell - low) / span * highest) if span else highest // 2]
        for cell in cells
    )


def bar(share: float, width: int) -> str:
    """A bar that fills a share (0 to 1) of `width` characters, to an eighth of one; a trace of it always shows."""
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    if share > 0:
        eighths = max(eighths, 1)
    return _FULL * (eighths // 8) + _FILLING[eighths % 8].strip()


class Fitted:
    """Text that is made for the width it gets.

    Args:
        text: makes it; told the characters there are.
        style: its colour.
    """

    def __init__(self, text: Callable[[int], str], style: str) -> None:
        self._text = text
        self._style = Style.parse(style)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(self._text(options.max_width).ljust(options.max_width), self._style)
        yield Segment.line()

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, options.max_width)
