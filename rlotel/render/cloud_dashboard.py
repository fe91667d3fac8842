"""Dashboards of Cloud Monitoring: a mosaic of 48 columns, with only those fields that the published API has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlotel.render import spelling
from rlotel.render.dashboard import series_unit
from rlotel.render.layout import COLUMNS, place
from rlotel.render.query import Scope, query
from rlotel.semconv import attributes as a

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlotel.render.dashboard import Dashboard, Panel, Series
    from rlotel.render.layout import Tile
    from rlotel.render.lines import Line
    from rlotel.render.options import Options

OWNER = {"managed-by": "rlotel"}
"""The label of everything that rlotel makes in a project, and the only thing by which it may remove any."""
NAME_LABEL = "rlotel-dashboard"

_METRIC_FILTERS = (a.RUN_ID, a.ALGORITHM, a.MODEL_NAME, a.ENVIRONMENT_NAME, a.SYSTEM)
_RESOURCE_FILTERS = ("cluster", "namespace")
_SAMPLING = "60s"
_PLOTS = {"line": "LINE", "stack": "STACKED_AREA"}


def render(dashboard: Dashboard, lines: dict[Panel, tuple[Line, ...]], options: Options) -> dict[str, Any]:
    """The JSON of one dashboard.

    Args:
        dashboard: what it shows.
        lines: the thresholds to draw into panels.
        options: windows, and matchers for every query.
    """
    scope = Scope(spelling.GOOGLE, options.windows.window_s, options.matchers)
    return {
        "displayName": dashboard.title,
        "labels": {**OWNER, NAME_LABEL: dashboard.name},
        "dashboardFilters": _filters(),
        "mosaicLayout": {
            "columns": COLUMNS,
            "tiles": [_tile(tile, dashboard, lines, scope) for tile in place(dashboard, google=True)],
        },
    }


def _filters() -> list[dict[str, str]]:
    labels = [(attribute.name, "METRIC_LABEL") for attribute in _METRIC_FILTERS]
    labels += [(label, "RESOURCE_LABEL") for label in _RESOURCE_FILTERS]
    # An empty template variable: the filter applies to every widget, and no query has to name it.
    return [
        {"labelKey": label, "filterType": kind, "stringValue": "", "templateVariable": ""}
        for label, kind in labels
    ]


def _tile(tile: Tile, dashboard: Dashboard, lines: dict[Panel, tuple[Line, ...]], scope: Scope) -> dict[str, Any]:
    if tile.panel is not None:
        widget = _widget(tile.panel, lines.get(tile.panel, ()), scope)
    elif tile.section is not None:
        header = {"subtitle": tile.section.question, "dividerBelow": True}
        widget = {"title": tile.section.title, "sectionHeader": header}
    else:
        widget = {"title": dashboard.title, "text": {"content": dashboard.answers, "format": "MARKDOWN"}}
    return {"xPos": tile.x, "yPos": tile.y, "width": tile.width, "height": tile.height, "widget": widget}


def _widget(panel: Panel, lines: Iterable[Line], scope: Scope) -> dict[str, Any]:
    title = {"title": panel.full_title(scope.window_s)}
    if panel.draw == "number":
        return {**title, "scorecard": _scorecard(panel, lines, scope)}
    if panel.draw == "table":
        sets = [{**_data_set(series, scope), "tableTemplate": series.legend} for series in panel.series]
        return {**title, "timeSeriesTable": {"dataSets": sets, "metricVisualization": "NUMBER"}}
    chart: dict[str, Any] = {
        "dataSets": [
            {
                **_data_set(series, scope),
                "plotType": _PLOTS[panel.draw],
                "targetAxis": "Y1",
                **({"legendTemplate": series.legend} if series.legend else {}),
            }
            for series in panel.series
        ],
        "yAxis": {"label": panel.unit.words, "scale": "LINEAR"},
        "chartOptions": {"mode": "COLOR"},
    }
    drawn = [{"label": line.label, "value": line.value, "targetAxis": "Y1"} for line in lines]
    return {**title, "xyChart": {**chart, **({"thresholds": drawn} if drawn else {})}}


def _scorecard(panel: Panel, lines: Iterable[Line], scope: Scope) -> dict[str, Any]:
    coloured = [
        {
            "label": line.label,
            "value": line.value,
            "color": "RED" if line.severity == "critical" else "YELLOW",
            "direction": line.direction,
        }
        for line in lines
    ]
    return {
        "timeSeriesQuery": _query(panel.series[0], scope),
        "sparkChartView": {"sparkChartType": "SPARK_LINE", "minAlignmentPeriod": _SAMPLING},
        **({"thresholds": coloured} if coloured else {}),
    }


def _data_set(series: Series, scope: Scope) -> dict[str, Any]:
    return {"timeSeriesQuery": _query(series, scope), "minAlignmentPeriod": _SAMPLING}


def _query(series: Series, scope: Scope) -> dict[str, Any]:
    return {"prometheusQuery": query(series.selection, scope), "unitOverride": series_unit(series).ucum}
