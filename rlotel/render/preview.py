"""A picture of a dashboard: the tiles of its Cloud Monitoring JSON, with the values of a Prometheus.

It shows the layout and whether there are values, not every trait of Google's console. The queries are the sources'
own, spelled for that Prometheus.
"""

from __future__ import annotations

import json
import math
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import EngFormatter, PercentFormatter

from rlotel.render import units
from rlotel.render.layout import COLUMNS, place
from rlotel.render.query import RUN, query

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from rlotel.render.dashboard import Dashboard, Panel, Series
    from rlotel.render.layout import Tile
    from rlotel.render.lines import Line
    from rlotel.render.query import Scope

_INCHES_A_COLUMN = 0.4
_INCHES_A_ROW = 0.21
_MARGIN = 0.6
"""Columns and rows between tiles."""
_POINTS = 200
_MOST_LINES = 8
_LOOKBACK_S = 300
_SCALED = {"By", "By/s", "W", "J", "Hz", "{flop}/s", "{token}/s"}
"""Units whose big values are read in thousands."""


Found = list[tuple[dict[str, str], list[float], list[float]]]
"""Of each series that a query found: labels, times in minutes, values."""


@dataclass(frozen=True)
class Source:
    """The Prometheus that has the values, and the time that is shown, in seconds since 1970."""

    url: str
    start: float
    end: float
    timeout_s: float = 30.0

    def series(self, promql: str) -> Found:
        """The series of a query.

        Raises:
            OSError: it does not answer, or does not take the query.
        """
        step = max((self.end - self.start) / _POINTS, 15)
        asked = urllib.parse.urlencode({"query": promql, "start": self.start, "end": self.end, "step": step})
        with urllib.request.urlopen(  # noqa: S310 - the scheme is the user's choice
            f"{self.url.rstrip('/')}/api/v1/query_range?{asked}", timeout=self.timeout_s
        ) as reply:
            found = json.load(reply)["data"]["result"]
        return [
            (
                one["metric"],
                [(at - self.start) / 60 for at, _ in one["values"]],
                [float(v) for _, v in one["values"]],
            )
            for one in found
        ]


def draw(
    dashboard: Dashboard, drawn: dict[Panel, tuple[Line, ...]], scope: Scope, source: Source, path: Path
) -> None:
    """Draws a dashboard into a PNG or SVG file.

    Raises:
        OSError: the Prometheus does not answer, or the file cannot be written.
    """
    tiles = place(dashboard, google=False)
    rows = max(tile.y + tile.height for tile in tiles)
    with mpl.rc_context({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(COLUMNS * _INCHES_A_COLUMN, rows * _INCHES_A_ROW), facecolor="#f1f3f4")
        FigureCanvasAgg(figure)
        for tile in tiles:
            _Tile(figure, tile, rows, dashboard).draw(drawn, scope, source)
        figure.savefig(path, dpi=60)


class _Tile:
    def __init__(self, figure: Figure, tile: Tile, rows: int, dashboard: Dashboard) -> None:
        self._tile = tile
        self._dashboard = dashboard
        self._rows = rows
        self._axes = figure.add_axes(self._box(0, 0, tile.width, tile.height, _MARGIN / 2))
        self._axes.set_axis_off()
        self._figure = figure
        self._end = 0.0

    def draw(self, drawn: dict[Panel, tuple[Line, ...]], scope: Scope, source: Source) -> None:
        panel, section = self._tile.panel, self._tile.section
        self._end = (source.end - source.start - _LOOKBACK_S) / 60
        if section is not None:
            self._write(0.005, 0.62, section.title, size=12, weight="bold")
            self._write(0.005, 0.15, section.question, size=8.5, color="#5f6368")
            return
        self._axes.add_patch(Rectangle((0, 0), 1, 1, facecolor="white", edgecolor="#dadce0"))
        if panel is None:
            self._write(0.01, 0.6, self._dashboard.title, size=14, weight="bold")
            self._write(0.01, 0.2, self._dashboard.answers, size=9)
            return
        title = panel.full_title(scope.window_s)
        self._write(0.02, 1 - 1.1 / self._tile.height, title, size=9, weight="bold")
        values = [(series, source.series(query(series.selection, scope))) for series in panel.series]
        if panel.draw == "number":
            self._number(panel, values[0][1])
        elif panel.draw == "table":
            self._table(values)
        else:
            self._chart(panel, values, drawn.get(panel, ()))

    def _box(
        self, left: float, up: float, width: float, height: float, margin: float
    ) -> tuple[float, float, float, float]:
        x, y = self._tile.x + left + margin, self._tile.y + up + margin
        w, h = width - 2 * margin, height - 2 * margin
        return x / COLUMNS, 1 - (y + h) / self._rows, w / COLUMNS, h / self._rows

    def _write(self, x: float, y: float, text: str, **style: Any) -> None:
        self._axes.text(x, y, text, transform=self._axes.transAxes, va="center", clip_on=True, **style)

    def _inner(self) -> Axes:
        return self._figure.add_axes(self._box(3, 2.4, self._tile.width - 4, self._tile.height - 4.8, 0))

    def _number(self, panel: Panel, found: Found) -> None:
        if not found:
            self._write(0.5, 0.4, "no data", ha="center", color="#b00020")
            return
        _, times, values = found[0]
        self._write(0.03, 0.42, f"{values[-1]:.4g} {panel.unit.words}", size=15)
        axes = self._figure.add_axes(self._box(6, 2.6, self._tile.width - 7, self._tile.height - 4, 0))
        axes.set_axis_off()
        axes.plot(times, values, color="#1a73e8", linewidth=1)

    def _chart(self, panel: Panel, values: list[tuple[Series, Found]], drawn: tuple[Line, ...]) -> None:
        axes = self._inner()
        flat = [
            (_legend(series, labels), times, line)
            for series, found in values
            for labels, times, line in found
            if any(map(math.isfinite, line))
        ][:_MOST_LINES]
        if not flat:
            axes.set_axis_off()
            self._write(0.5, 0.45, "no data", ha="center", color="#b00020")
            return
        if panel.draw == "stack":
            grid = sorted({at for _, times, _ in flat for at in times})
            known = [dict(zip(times, line, strict=True)) for _, times, line in flat]
            heights = [[one.get(at, 0.0) for at in grid] for one in known]
            axes.stackplot(grid, heights, labels=[name for name, _, _ in flat], alpha=0.7)
        else:
            for name, times, line in flat:
                axes.plot(times, line, linewidth=1.2, label=name)
        low, high = axes.get_ylim()
        for limit in drawn:
            if limit.value <= high * 2:  # one that is far off would flatten the lines
                high = max(high, limit.value)
                colour = "#d93025" if limit.severity == "critical" else "#f9ab00"
                axes.axhline(limit.value, color=colour, linestyle="--", linewidth=1, label=limit.label)
        # Room for the legend, above the lines.
        axes.set_ylim(min(low, 0) if low < high / 2 else low, high + 0.2 * (high - low))
        if panel.unit == units.SHARE:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        elif panel.unit.ucum in _SCALED:
            axes.yaxis.set_major_formatter(EngFormatter(panel.unit.words, sep=" "))
        else:
            axes.set_ylabel(panel.unit.words, fontsize=7)
        axes.set_xlabel("minutes", fontsize=7)
        axes.legend(fontsize=6, framealpha=0.8, edgecolor="none", loc="upper left", ncols=2)

    def _table(self, values: list[tuple[Series, Found]]) -> None:
        run = RUN.replace(".", "_")
        columns = ["Run", *(series.legend for series, _ in values)]
        rows: dict[str, dict[str, str]] = {}
        for series, found in values:
            for labels, times, line in found:
                if times[-1] < self._end:
                    continue  # a table shows the present, and this series has ended
                named = [value for key, value in labels.items() if key != run]
                shown = named[-1] if series.selection.statistic == "state" and named else f"{line[-1]:.4g}"
                rows.setdefault(labels.get(run, ""), {})[series.legend] = shown
        cells = [[name, *(row.get(column, "") for column in columns[1:])] for name, row in sorted(rows.items())]
        if cells:
            axes = self._inner()
            axes.set_axis_off()
            table = axes.table(cells, colLabels=columns, loc="upper center", cellLoc="left")
            table.set_fontsize(8)


def _legend(series: Series, labels: dict[str, str]) -> str:
    run = RUN.replace(".", "_")
    words = [series.legend, *(value for key, value in labels.items() if key != run)]
    return " · ".join(word for word in words if word) or labels.get(run, "all")
