"""Dashboards of Grafana, on a Prometheus data source that the reader chooses."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from rlotel.render import spelling as spellings
from rlotel.render.dashboard import series_unit
from rlotel.render.layout import COLUMNS, place
from rlotel.render.query import RUN, Scope, query
from rlotel.semconv import attributes as a
from rlotel.semconv import metrics as m

if TYPE_CHECKING:
    from rlotel.render.dashboard import Dashboard, Panel, Series
    from rlotel.render.layout import Tile
    from rlotel.render.lines import Line
    from rlotel.render.options import Options
    from rlotel.render.spelling import Spelling

_GRID = 24
_ROW_HEIGHT = 2
"""Rows of the mosaic that one row of Grafana's grid is high."""
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_VARIABLES = {"algorithm": a.ALGORITHM.name, "model": a.MODEL_NAME.name, "run": RUN}


def render(
    dashboard: Dashboard, lines: dict[Panel, tuple[Line, ...]], spelling: Spelling, options: Options
) -> dict[str, Any]:
    """The JSON of one dashboard."""
    chosen = tuple((label, "=~", f"${variable}") for variable, label in _VARIABLES.items())
    scope = Scope(spelling, options.windows.window_s, (*options.matchers, *chosen))
    tiles = place(dashboard, google=spelling is spellings.GOOGLE)
    uid = hashlib.sha256(f"{spelling.name}/{dashboard.name}".encode()).hexdigest()[:8]
    return {
        "uid": f"rlotel-{dashboard.name.replace('_', '-')[:24]}-{uid}",
        "title": dashboard.title,
        "description": dashboard.answers,
        "tags": ["rlotel", "reinforcement-learning"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_data_source(), *(_variable(name, scope) for name in _VARIABLES)]},
        "panels": [_panel(number, tile, dashboard, lines, scope) for number, tile in enumerate(tiles, 1)],
    }


def _data_source() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}


def _variable(name: str, scope: Scope) -> dict[str, Any]:
    label = scope.spelling.label(_VARIABLES[name]).strip('"')
    series = scope.spelling.selector(m.RUN_STATUS, [])
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": f"label_values({series}, {label})", "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(
    number: int, tile: Tile, dashboard: Dashboard, lines: dict[Panel, tuple[Line, ...]], scope: Scope
) -> dict[str, Any]:
    place_of = {
        "x": tile.x * _GRID // COLUMNS,
        "y": tile.y // _ROW_HEIGHT,
        "w": tile.width * _GRID // COLUMNS,
        "h": tile.height // _ROW_HEIGHT,
    }
    common = {"id": number, "gridPos": place_of}
    if tile.panel is not None:
        return {**common, **_drawn(tile.panel, lines.get(tile.panel, ()), scope)}
    title, text = (
        (dashboard.title, dashboard.answers)
        if tile.section is None
        else (tile.section.title, tile.section.question)
    )
    return {**common, "type": "text", "title": title, "options": {"mode": "markdown", "content": text}}


def _drawn(panel: Panel, lines: tuple[Line, ...], scope: Scope) -> dict[str, Any]:
    kind = {"number": "stat", "table": "table"}.get(panel.draw, "timeseries")
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    colours = {"critical": "red", "warning": "orange"}
    steps += [{"color": colours[line.severity], "value": line.value} for line in sorted(lines, key=_value)]
    defaults: dict[str, Any] = {"unit": panel.unit.grafana, "thresholds": {"mode": "absolute", "steps": steps}}
    if kind == "timeseries":
        defaults["custom"] = {
            "fillOpacity": 40 if panel.draw == "stack" else 0,
            "stacking": {"mode": "normal" if panel.draw == "stack" else "none"},
            "thresholdsStyle": {"mode": "line" if lines else "off"},
        }
    targets = [_target(index, series, panel, scope) for index, series in enumerate(panel.series)]
    drawn: dict[str, Any] = {
        "type": kind,
        "title": panel.full_title(scope.window_s),
        "description": panel.description,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": targets,
    }
    if kind == "table":
        names = {
            f"Value #{target['refId']}": series.legend
            for target, series in zip(targets, panel.series, strict=True)
        }
        drawn["transformations"] = [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": names}},
        ]
        drawn["fieldConfig"]["defaults"]["unit"] = "none"
        drawn["fieldConfig"]["overrides"] = [
            {
                "matcher": {"id": "byName", "options": series.legend},
                "properties": [{"id": "unit", "value": series_unit(series).grafana}],
            }
            for series in panel.series
        ]
    return drawn


def _value(line: Line) -> float:
    return line.value


def _target(index: int, series: Series, panel: Panel, scope: Scope) -> dict[str, Any]:
    labels = [label for label in series.selection.by if label != RUN] + [
        label for label in series.selection.by if label == RUN
    ]
    words = ["{{" + scope.spelling.label(label).strip('"') + "}}" for label in labels]
    target = {
        "refId": chr(ord("A") + index),
        "datasource": _SOURCE,
        "expr": query(series.selection, scope),
        "legendFormat": " · ".join([series.legend, *words] if series.legend else words) or panel.title,
    }
    if panel.draw == "table":
        return {**target, "format": "table", "instant": True}
    return target
