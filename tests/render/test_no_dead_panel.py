"""Every panel shows something, and every alert fires when it should, on telemetry that rlotel really sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rlotel.cli import main
from rlotel.render import alert, dashboard, query, spelling
from rlotel.render.dashboard import Dashboard
from rlotel.render.neighbours import Neighbour
from rlotel.render.query import Scope
from rlotel.render.windows import Windows
from tests.render.runs import RUNS
from tests.render.stored import Store

pytestmark = pytest.mark.xdist_group("prometheus")

SCOPE = Scope(spelling.PROMETHEUS, Windows().window_s)
# Nobody waits four hours here for a checkpoint that does not come.
SOONER = {"checkpoint_too_old": "150m"}


def _dead(shown: Dashboard, stores: list[Store], *, of_neighbours: bool) -> list[str]:
    """The queries that find nothing in any of the stores."""
    questions = {
        query.query(series.selection, SCOPE): panel.title
        for panel in shown.panels
        for series in panel.series
        if isinstance(series.selection.metric, Neighbour) == of_neighbours
    }
    return [f"{title}: {text}" for text, title in questions.items() if not any(one.series(text) for one in stores)]


@pytest.mark.parametrize("shown", dashboard.load_all(), ids=lambda shown: shown.name)
def test_no_panel_is_dead(shown: Dashboard, demo: Store, all_runs: Store, two_processes: Store) -> None:
    assert _dead(shown, [demo, all_runs, two_processes], of_neighbours=False) == []


@pytest.mark.parametrize("shown", dashboard.load_all(), ids=lambda shown: shown.name)
def test_no_panel_about_others_is_dead(shown: Dashboard, neighbours: Store) -> None:
    assert _dead(shown, [neighbours], of_neighbours=True) == []


def _fired(store: Store, values: dict[str, str]) -> dict[str, set[str]]:
    fired: dict[str, set[str]] = {}
    for one in alert.load_all(values=values):
        for series in store.series(one.promql(SCOPE, Windows())):
            fired.setdefault(series["metric"]["rl_run_id"], set()).add(one.name)
    return fired


def test_each_alert_fires_for_the_run_that_has_its_illness_and_for_no_other(all_runs: Store) -> None:
    expected = {name: alerts for name, (_, alerts) in RUNS.items() if alerts}
    assert _fired(all_runs, SOONER) == expected


def test_what_goes_wrong_in_the_demo_fires_and_its_normal_end_does_not(demo: Store) -> None:
    (fired,) = _fired(demo, {}).values()
    pages = fired & {one.name for one in alert.load_all() if one.severity == "critical"}
    # Whether its stall of five seconds is long beside an iteration depends on how fast this machine is.
    assert pages - {"RLNoProgress"} == {"RLNonFinite", "RLPhaseStuck", "RLRewardFailing"}


def test_what_is_wrong_with_the_gpus_fires_and_so_does_the_failed_end(two_processes: Store) -> None:
    (fired,) = _fired(two_processes, {}).values()
    platform = {one for one in fired if one.startswith(("RLGPU", "RLRun", "RLTelemetry"))}
    ill = {"RLGPUXid", "RLGPULost", "RLGPUUncorrectedMemoryError", "RLGPUThrottled", "RLGPUMemoryNearlyFull"}
    assert platform == {*ill, "RLRunFailed"}


def test_a_dashboard_is_drawn_with_the_values_of_a_prometheus(demo: Store, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "overview.svg"
    hours = str((demo.end - demo.start) / 3600)
    command = [
        "dashboards",
        "preview",
        "overview",
        "--prometheus",
        demo.url,
        "--hours",
        hours,
        "--end",
        str(demo.end),
    ]
    done = CliRunner().invoke(main, [*command, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert out.read_text().count("<path") > len(dashboard.load_all()[0].panels)


def test_a_prometheus_that_does_not_answer_is_named(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    command = ["dashboards", "preview", "overview", "--prometheus", "http://127.0.0.1:1"]
    done = CliRunner().invoke(main, [*command, "--out", str(tmp_path / "x.png")])
    assert done.exit_code == 1
    assert "http://127.0.0.1:1 does not answer" in done.output
