"""What is committed is what the sources make, Google's libraries take it, and Prometheus does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import hcl2
import pytest
from click.testing import CliRunner

from rlotel.cli import main
from rlotel.render import alert, dashboard, files, lint, promtool, source, spelling
from rlotel.render.alert import Alert
from rlotel.render.options import Options
from rlotel.render.windows import Windows
from tests.render.stored import tool

ALERTS = alert.load_all()
DASHBOARDS = files.dashboards(dashboard.load_all(), ALERTS, Options())
POLICIES = files.alerts(ALERTS, Options())


def _of(made: dict[str, str], folder: str) -> list[str]:
    return [path for path in made if path.startswith(folder)]


@pytest.mark.parametrize(("name", "made"), [("dashboards", DASHBOARDS), ("alerts", POLICIES)])
def test_committed_files_are_fresh(name: str, made: dict[str, str]) -> None:
    assert files.stale(made, source.folder(name)) == []


@pytest.mark.parametrize("path", _of(DASHBOARDS, "cloud-monitoring"))
def test_google_takes_the_dashboard(path: str) -> None:
    library = pytest.importorskip("google.cloud.monitoring_dashboard_v1")
    taken = library.Dashboard.from_json(DASHBOARDS[path])
    assert len(taken.mosaic_layout.tiles) == len(json.loads(DASHBOARDS[path])["mosaicLayout"]["tiles"])


@pytest.mark.parametrize("path", _of(POLICIES, "cloud-monitoring"))
def test_google_takes_the_policy(path: str) -> None:
    library = pytest.importorskip("google.cloud.monitoring_v3")
    taken = library.AlertPolicy.from_json(POLICIES[path])
    assert taken.conditions[0].condition_prometheus_query_language.alert_rule == Path(path).stem


def test_the_linter_finds_nothing() -> None:
    found = lint.dashboards(DASHBOARDS, Windows()) | lint.policies(POLICIES, Windows())
    assert {path: problems for path, problems in found.items() if problems} == {}


@pytest.mark.parametrize("loop_time_s", [60, 2400])
def test_the_linter_finds_nothing_when_windows_follow_the_iteration_time(loop_time_s: int) -> None:
    times = Windows(loop_time_s)
    found = lint.policies(files.alerts(ALERTS, Options(times)), times)
    assert {path: problems for path, problems in found.items() if problems} == {}


@pytest.mark.parametrize("path", _of(POLICIES, "prometheus"))
def test_prometheus_takes_the_rules(path: str) -> None:
    rules = str(source.folder("alerts") / path)
    done = subprocess.run([tool("promtool"), "check", "rules", rules], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_alert_fires_in_its_cases_and_is_silent_in_the_others() -> None:
    tool("promtool")
    assert promtool.check(ALERTS, spelling.PROMETHEUS, Options()) is None


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    books = {path.stem for path in (source.folder("alerts") / "runbooks").glob("*.md")}
    assert books == {one.name for one in ALERTS}


def test_runbooks_name_panels_that_there_are() -> None:
    titles = {panel.title for one in dashboard.load_all() for panel in one.panels}
    named = {
        word.split(",")[0] if word not in titles else word
        for one in ALERTS
        for word in one.runbook.split("**")[1::2]
    }
    known = titles | {title.split(",")[0] for title in titles}
    assert named - known == set()


@pytest.mark.parametrize("one", ALERTS, ids=lambda one: one.name)
def test_terraform_says_the_same_as_the_json(one: Alert) -> None:
    (resource,) = hcl2.loads(POLICIES[f"terraform/{one.name}.tf"])["resource"]
    written = resource['"google_monitoring_alert_policy"'][f'"{one.name}"']
    policy = json.loads(POLICIES[f"cloud-monitoring/{one.name}.json"])
    condition = written["conditions"][0]["condition_prometheus_query_language"][0]
    promql = policy["conditions"][0]["conditionPrometheusQueryLanguage"]
    assert json.loads(condition["query"]) == promql["query"]
    assert json.loads(written["documentation"][0]["content"]) == policy["documentation"]["content"]
    assert json.loads(written["severity"]) == policy["severity"]


def test_terraform_has_every_dashboard() -> None:
    resources = hcl2.loads(DASHBOARDS["terraform/dashboards.tf"])["resource"]
    named = {name for one in resources for name in one['"google_monitoring_dashboard"']}
    assert named == {f'"rlotel_{one.name}"' for one in dashboard.load_all()}


def test_render_writes_what_is_missing_and_removes_what_is_left_over(tmp_path: Path) -> None:
    left_over = tmp_path / "cloud-monitoring" / "RLForgotten.json"
    left_over.parent.mkdir()
    left_over.write_text("{}")
    command = ["alerts", "render", "--out", str(tmp_path)]
    assert CliRunner().invoke(main, [*command, "--check"]).exit_code == 1
    assert CliRunner().invoke(main, command).exit_code == 0
    assert CliRunner().invoke(main, [*command, "--check"]).exit_code == 0
    assert not left_over.exists()


def test_a_user_renders_with_a_selector_thresholds_and_a_spelling_of_their_own(tmp_path: Path) -> None:
    options = [
        "--select",
        "rl.run.id=r1",
        "--threshold",
        "idle_share=0.9",
        "--spelling",
        "google",
        "--loop-time",
        "40m",
    ]
    done = CliRunner().invoke(main, ["alerts", "render", "--out", str(tmp_path), *options])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "prometheus/rlotel-google.yaml").read_text()
    assert 'avg_over_time({"rl.loop.idle.ratio","rl.run.id"="r1"}[80m])) > 0.9' in text


def test_a_threshold_that_there_is_not_is_an_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["alerts", "render", "--out", str(tmp_path), "--threshold", "idel_share=1"])
    assert done.exit_code == 1
    assert "no threshold idel_share; `rlotel alerts list` lists them" in done.output


def test_a_selector_that_no_metric_has_is_an_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["alerts", "render", "--out", str(tmp_path), "--select", "rl.run=r1"])
    assert done.exit_code == 2
    assert "not every metric has rl.run; there are cluster, " in done.output
