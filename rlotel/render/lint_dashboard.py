"""What is wrong with a dashboard of Cloud Monitoring that its API would take without a word."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from rlotel.render import lint_query, spelling
from rlotel.render.layout import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlotel.render.windows import Windows

MOST_WIDGETS = 50
_SHOWING = ("xyChart", "scorecard", "timeSeriesTable")


def problems(content: dict[str, Any], times: Windows) -> list[str]:
    """Everything that is wrong, each with the place where."""
    found = [] if content.get("displayName") else ["the dashboard has no displayName"]
    if not content.get("dashboardFilters"):
        found.append("the dashboard has no filters: nobody can choose a run")
    mosaic = content.get("mosaicLayout", {})
    if mosaic.get("columns") != COLUMNS:
        found.append(f"the mosaic has {mosaic.get('columns')} columns, and not {COLUMNS}")
    tiles = mosaic.get("tiles", [])
    if len(tiles) > MOST_WIDGETS:
        found.append(f"{len(tiles)} widgets, and more than {MOST_WIDGETS} are slow to open; make two dashboards")
    found += _grid(tiles)
    titles = [tile["widget"].get("title", "") for tile in tiles]
    found += [
        f"several widgets are called {title!r}" for title in sorted({t for t in titles if titles.count(t) > 1})
    ]
    for tile, title in zip(tiles, titles, strict=True):
        found += [f"{title or 'a widget'}: {problem}" for problem in _widget(tile["widget"], times)]
    return found


def _grid(tiles: list[dict[str, Any]]) -> Iterator[str]:
    for tile in tiles:
        x, y, width, height = _rectangle(tile)
        if min(x, y) < 0 or min(width, height) < 1 or x + width > COLUMNS:
            yield f"{_title(tile)}: it lies outside of the {COLUMNS} columns"
    for one, other in combinations(tiles, 2):
        if _overlap(_rectangle(one), _rectangle(other)):
            yield f"{_title(one)}: it overlaps with {_title(other)}"


def _rectangle(tile: dict[str, Any]) -> tuple[int, int, int, int]:
    return tile.get("xPos", 0), tile.get("yPos", 0), tile["width"], tile["height"]


def _overlap(one: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> bool:
    beside = one[0] + one[2] <= other[0] or other[0] + other[2] <= one[0]
    below = one[1] + one[3] <= other[1] or other[1] + other[3] <= one[1]
    return not beside and not below


def _title(tile: dict[str, Any]) -> str:
    return str(tile["widget"].get("title") or "a widget without title")


def _widget(widget: dict[str, Any], times: Windows) -> Iterator[str]:
    if not widget.get("title"):
        yield "it has no title"
    shown = [(kind, widget[kind]) for kind in _SHOWING if kind in widget]
    for kind, content in shown:
        sets = [content] if kind == "scorecard" else content.get("dataSets", [])
        if not sets:
            yield "it shows nothing"
        for one in sets:
            yield from _query(one.get("timeSeriesQuery", {}), times)
            sampled = one.get("sparkChartView", {}) if kind == "scorecard" else one
            if "minAlignmentPeriod" not in sampled:
                yield "it has no minAlignmentPeriod"
        if kind == "xyChart" and any(
            "color" in line or "direction" in line for line in content.get("thresholds", ())
        ):
            yield "a threshold of an xyChart has neither color nor direction"


def _query(query: dict[str, Any], times: Windows) -> Iterator[str]:
    text, unit = query.get("prometheusQuery", ""), query.get("unitOverride")
    found = lint_query.problems(text, spelling.GOOGLE, times)
    yield from found
    if unit is None:
        yield "it has no unit"
    elif not found and unit not in (fitting := lint_query.fitting_units(text, spelling.GOOGLE)):
        yield f"its unit is {unit!r}; what the query gives is in {' or '.join(sorted(fitting))}"
