"""A dashboard as its source says it: sections that ask a question, and panels that answer it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlotel.render import source, statistics
from rlotel.render.neighbours import Neighbour
from rlotel.render.query import RUN
from rlotel.render.selection import KEYS, Selection, selection
from rlotel.render.source import SourceError

if TYPE_CHECKING:
    from pathlib import Path

    from rlotel.render.units import Unit

DRAWN = ("line", "stack", "number", "table")


@dataclass(frozen=True)
class Series:
    """One query of a panel, and what tells its lines from those of the panel's other queries."""

    selection: Selection
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """One picture. All its series have one unit, unless it is a table."""

    title: str
    draw: str
    series: tuple[Series, ...]

    @property
    def unit(self) -> Unit:
        """The unit of its values."""
        return series_unit(self.series[0])

    @property
    def description(self) -> str:
        """What its metrics mean, in the words of the model."""
        briefs = [entry.selection.metric.brief for entry in self.series]
        return " ".join(dict.fromkeys(briefs))

    @property
    def google_only(self) -> bool:
        """Whether only Google Cloud has these metrics."""
        metrics = [entry.selection.metric for entry in self.series]
        return any(isinstance(metric, Neighbour) and metric.resource is not None for metric in metrics)

    def full_title(self, window_s: int) -> str:
        """The title, with what the statistics make of the metric."""
        if self.draw == "table":
            return self.title
        chosen = [entry.selection for entry in self.series]
        words = dict.fromkeys(statistics.suffix(one.statistic, one.metric, window_s) for one in chosen)
        return ", ".join(filter(None, [self.title, *words]))


@dataclass(frozen=True)
class Section:
    """Panels that answer one question."""

    title: str
    question: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Dashboard:
    """A whole dashboard."""

    name: str
    title: str
    answers: str
    """The sentence it opens with: what it answers."""
    sections: tuple[Section, ...]

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels, in order."""
        return tuple(panel for section in self.sections for panel in section.panels)


def series_unit(series: Series) -> Unit:
    """The unit of one query's values."""
    chosen = series.selection
    return statistics.unit(chosen.statistic, chosen.metric, chosen.of)


def load_all(folder: Path | None = None) -> list[Dashboard]:
    """Every dashboard of a folder, by default of those that come with rlotel, in the order of their files.

    Raises:
        SourceError: a source is wrong.
    """
    place = source.folder("dashboards") if folder is None else folder
    paths = [path for path in sorted(place.glob("*.yaml")) if path.name != "neighbours.yaml"]
    return [load(path) for path in paths]


def load(path: Path) -> Dashboard:
    """One dashboard.

    Raises:
        SourceError: the source is wrong.
    """
    content = source.read(path)
    source.refuse_unknown(content, {"title", "answers", "sections"}, str(path))
    sections = tuple(_section(entry, str(path)) for entry in content["sections"])
    return Dashboard(path.stem, content["title"], content["answers"], sections)


def _section(entry: dict[str, Any], path: str) -> Section:
    source.refuse_unknown(entry, {"title", "question", "panels"}, path)
    where = f"{path}: {entry['title']}"
    return Section(entry["title"], entry["question"], tuple(_panel(panel, where) for panel in entry["panels"]))


def _panel(entry: dict[str, Any], section: str) -> Panel:
    where = f"{section}: {entry.get('title', 'a panel without title')}"
    source.refuse_unknown(entry, KEYS | {"title", "draw", "series", "runs"}, where)
    draw = entry.get("draw", "line")
    if draw not in DRAWN:
        raise SourceError(f"{where}: draw: {draw!r} is not one of {', '.join(DRAWN)}")
    common = {key: value for key, value in entry.items() if key in KEYS}
    runs = entry.get("runs", "together" if draw == "number" else "apart")
    if runs not in ("together", "apart"):
        raise SourceError(f"{where}: runs: {runs!r} is not one of together, apart")
    series = tuple(
        _apart(single) if runs == "apart" else single
        for part in entry.get("series", [{}])
        for single in _series({**common, **part}, where)
    )
    panel = Panel(entry["title"], draw, series)
    if draw != "table" and len({series_unit(single) for single in series}) > 1:
        raise SourceError(f"{where}: its series have different units; give each unit a panel of its own")
    if draw == "number" and len(series) > 1:
        raise SourceError(f"{where}: a number shows one series")
    return panel


def _series(entry: dict[str, Any], where: str) -> list[Series]:
    source.refuse_unknown(entry, KEYS | {"legend"}, where)
    named = entry.get("statistic", "last")
    several = named if isinstance(named, list) else [named]
    legend = entry.get("legend", "")
    return [
        Series(
            selection({key: value for key, value in entry.items() if key in KEYS} | {"statistic": name}, where),
            legend or (name if len(several) > 1 else ""),
        )
        for name in several
    ]


def _apart(series: Series) -> Series:
    """Lines of different runs are not added up unless that is asked for; series about machines know no run."""
    chosen = series.selection
    if isinstance(chosen.metric, Neighbour) or RUN in chosen.by:
        return series
    return replace(series, selection=replace(chosen, by=(RUN, *chosen.by)))
