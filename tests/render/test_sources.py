"""A source that does not fit the model is an error that says where, and what to write instead."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rlotel.render import SourceError, alert, dashboard, query, spelling
from rlotel.render.layout import COLUMNS, place
from rlotel.render.query import Scope
from rlotel.render.selection import selection
from rlotel.render.source import folder
from rlotel.render.windows import Windows, seconds, text

SCOPE = Scope(spelling.GOOGLE, 1800)
BY_RUN = '"rl.run.id"'


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({}, "here: say which metric"),
        (
            {"metric": "rl.lop.duration"},
            "here: rl.lop.duration is no metric of the model; did you mean rl.loop.duration",
        ),
        ({"metric": "rl.entropy", "statistic": "median"}, "here: no statistic 'median'; there are last, "),
        (
            {"metric": "rl.entropy", "statistic": "rate"},
            "here: rl.entropy is a gauge, without rate; it has last, highest,",
        ),
        ({"metric": "rl.phase.time", "statistic": "share"}, "here: `of` goes with share and ratio"),
        (
            {"metric": "rl.phase.time", "statistic": "share", "of": "rl.loop.duration"},
            "here: rl.phase.time is a counter and rl.loop.duration a histogram",
        ),
        ({"metric": "rl.entropy", "statistic": "age"}, "here: rl.entropy is no age"),
        ({"metric": "rl.entropy", "by": ["rl.phase.name"]}, "here: rl.entropy has no label rl.phase.name; it has"),
        (
            {"metric": "rl.entropy", "where": {"rl.run.id": {"is": "x"}}},
            "here: rl.run.id: a value, a list of values",
        ),
        (
            {"metric": "rl.phase.duration", "statistic": "failure_ratio"},
            "here: failures are counted for checkpoint, loop, reward, sample, sync, train",
        ),
    ],
)
def test_a_selection_that_does_not_fit(entry: dict[str, object], problem: str) -> None:
    with pytest.raises(SourceError) as refused:
        selection(entry, "here")
    assert str(refused.value).startswith(problem)


@pytest.mark.parametrize(
    ("entry", "promql"),
    [
        ({"metric": "rl.entropy"}, 'avg({"rl.entropy"})'),
        ({"metric": "rl.train.steps", "statistic": "rate"}, 'sum(rate({"rl.train.steps"}[30m]))'),
        (
            {"metric": "rl.loop.duration", "statistic": "p95", "by": ["rl.run.id"]},
            f'histogram_quantile(0.95, sum by ({BY_RUN}, le) (rate({{"rl.loop.duration_bucket"}}[30m])))',
        ),
        (
            {"metric": "rl.loop.duration", "statistic": "increase", "where": {"error.type": {"not": ""}}},
            'sum(increase({"rl.loop.duration_count","error.type"!=""}[30m]))',
        ),
        (
            {
                "metric": "rl.phase.time",
                "statistic": "share",
                "of": "rl.phase.time",
                "by": ["rl.run.id", "rl.phase.name"],
            },
            (
                f'sum by ({BY_RUN}, "rl.phase.name") (increase({{"rl.phase.time"}}[30m]))'
                f' / on ({BY_RUN}) group_left () sum by ({BY_RUN}) (increase({{"rl.phase.time"}}[30m]))'
            ),
        ),
        (
            {"metric": "rl.reward.duration", "statistic": "failure_ratio"},
            (
                'sum(increase({"rl.phase.failures","rl.phase.name"="reward"}[30m]))'
                ' / sum(increase({"rl.reward.duration_count"}[30m]))'
            ),
        ),
        (
            {"metric": "rl.run.status", "statistic": "state", "by": ["rl.run.state"]},
            'max by ("rl.run.state") ({"rl.run.status"}) == 1',
        ),
    ],
)
def test_a_statistic_is_this_promql(entry: dict[str, object], promql: str) -> None:
    assert query.query(selection(entry, "here"), SCOPE) == promql


def _dashboard(tmp_path: Path, panel: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(f"title: T\nanswers: A\nsections: [{{title: S, question: Q, panels: [{panel}]}}]\n")
    return path


@pytest.mark.parametrize(
    ("panel", "problem"),
    [
        ("{title: P, metric: rl.entropy, colour: red}", "S: P: colour means nothing here"),
        (
            "{title: P, metric: rl.entropy, draw: pie}",
            "S: P: draw: 'pie' is not one of line, stack, number, table",
        ),
        (
            "{title: P, series: [{metric: rl.entropy}, {metric: rl.loop.age, statistic: age}]}",
            "S: P: its series have different units; give each unit a panel of its own",
        ),
        (
            "{title: P, metric: rl.loop.duration, statistic: [p50, p95], draw: number}",
            "S: P: a number shows one series",
        ),
    ],
)
def test_a_panel_that_does_not_fit(tmp_path: Path, panel: str, problem: str) -> None:
    with pytest.raises(SourceError, match=r"\.yaml: ") as refused:
        dashboard.load(_dashboard(tmp_path, panel))
    assert problem in str(refused.value)


def test_lines_of_different_runs_are_never_added_up(tmp_path: Path) -> None:
    (panel,) = dashboard.load(_dashboard(tmp_path, "{title: P, metric: rl.entropy}")).panels
    assert panel.series[0].selection.by == ("rl.run.id",)


@pytest.mark.parametrize("google", [True, False])
@pytest.mark.parametrize("shown", dashboard.load_all(), ids=lambda shown: shown.name)
def test_every_row_of_a_layout_is_full(shown: dashboard.Dashboard, google: bool) -> None:
    tiles = place(shown, google=google)
    for y in {tile.y for tile in tiles}:
        row = [tile for tile in tiles if tile.y == y]
        assert sum(tile.width for tile in row) == COLUMNS
        assert len({tile.height for tile in row}) == 1


ALERT = """
thresholds: {limit: {value: 1, because: "a test"}}
alerts:
  - {alert: Mine, symptom: S., losing: L., severity: warning, when: {metric: rl.entropy, above: limit}}
"""


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("above: limit", "above: other", "Mine: no threshold 'other'; there are limit"),
        ("above: limit", "statistic: mean", "Mine: compare it with one threshold, by one of above, at_least,"),
        ("severity: warning", "severity: page", "Mine: severity is one of critical, warning, and not page"),
        ("losing: L., ", "", "Mine: losing is missing"),
        (', because: "a test"', "", "threshold limit: say because of what"),
        ("value: 1", "value: soon", "threshold limit: 'soon' is no duration"),
        ("value: 1", "value: 1, loops: 2", "threshold limit: only a duration grows with the iteration time"),
    ],
)
def test_an_alert_that_does_not_fit(tmp_path: Path, old: str, new: str, problem: str) -> None:
    (tmp_path / "runbooks").mkdir()
    (tmp_path / "runbooks" / "Mine.md").write_text("# Mine\n")
    path = tmp_path / "mine.yaml"
    path.write_text(ALERT)
    assert [one.name for one in alert.load_all(tmp_path)] == ["Mine"]
    path.write_text(ALERT.replace(old, new))
    with pytest.raises(SourceError) as refused:
        alert.load_all(tmp_path)
    assert problem in str(refused.value)


def test_an_alert_without_a_runbook_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(ALERT)
    with pytest.raises(SourceError, match=r"Mine: write .*Mine\.md: Meaning, Impact, Diagnosis, Mitigation"):
        alert.load_all(tmp_path)


def test_an_alert_without_a_case_that_is_silent_is_an_error(tmp_path: Path) -> None:
    from rlotel.render.cases import promtool_tests

    shutil.copytree(folder("alerts"), tmp_path / "alerts")
    cases = tmp_path / "alerts" / "cases" / "alerts.yaml"
    cases.write_text("usual: []\ncases: {RLRunFailed: {fires: {at: 1m, series: []}}}\n")
    with pytest.raises(SourceError, match="write a case that fires and one that is silent"):
        promtool_tests(alert.load_all(tmp_path / "alerts"), spelling.PROMETHEUS, "rules.yaml", tmp_path / "alerts")


def test_windows_hold_two_iterations_however_long_they_are() -> None:
    assert [text(Windows(loop).window_s) for loop in (10, 900, 1200, 7200)] == ["30m", "30m", "40m", "4h"]


def test_a_duration_is_read_and_written_the_same() -> None:
    assert [text(seconds(one)) for one in ("90s", "30m", "2h", "1d")] == ["90s", "30m", "2h", "1d"]
    with pytest.raises(ValueError, match="write a whole number and s, m, h or d, such as 30m"):
        seconds("soon")
