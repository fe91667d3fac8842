"""Each rule of the linter has something that it finds."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlotel.cli import main
from rlotel.render import alert, cloud_alert, cloud_dashboard, dashboard, lint_dashboard, lint_policy, lint_query
from rlotel.render import spelling as spellings
from rlotel.render.options import Options
from rlotel.render.windows import Windows

TIMES = Windows()
OVERVIEW = cloud_dashboard.render(
    next(one for one in dashboard.load_all() if one.name == "overview"), {}, Options()
)
POLICY = cloud_alert.render(alert.load_all()[0], Options())

Change = Callable[[Any], object]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the query is empty"),
        ("sum(rl.train.loss)", "it does not parse: unexpected character after '.': 't'"),
        ('increase({"rl.train.steps"})', "it does not parse: expected type matrix in call to function"),
        ('{"rl.train.los"}', "rl.train.los is no metric of the model"),
        ("rl_train_loss", "rl_train_loss is no metric of the model"),
        ('rate({"rl.loop.duration"}[30m])', "rl.loop.duration is spelled rl.loop.duration_bucket or"),
        ('rate({"rl.train.steps_total"}[30m])', "rl.train.steps_total is spelled rl.train.steps here"),
        (
            'rate({"rl.train.steps_count"}[30m])',
            "rl.train.steps_count: rl.train.steps is a counter and has no count",
        ),
        ('{"rl.loop.duration_sum"}', "rl.loop.duration_sum only grows; take its rate or increase"),
        ('rate({"rl.train.mfu"}[30m])', "rate of rl.train.mfu, which is a gauge"),
        ('avg_over_time({"rl.train.steps"}[30m])', "avg_over_time of rl.train.steps, which only grows"),
        ('mad_over_time({"rl.train.mfu"}[30m])', "the function mad_over_time is not among"),
        (
            'rate({"rl.train.steps"}[5m])',
            "a window of 5m holds less than 2 iterations of 15m; look back at least 30m",
        ),
        ('{"rl.train.mfu","rl.phase.name"="train"}', "rl.train.mfu has no label rl.phase.name"),
        ('sum by ("rl.run") ({"rl.train.mfu"})', "it groups by rl.run, which none of its metrics has"),
        ('{__name__=~"rl.*"}', "a selector does not say exactly which metric"),
    ],
)
def test_a_query_that_is_wrong(text: str, problem: str) -> None:
    (found, *others) = lint_query.problems(text, spellings.GOOGLE, TIMES)
    assert found.startswith(problem)
    assert others == []


def test_a_query_that_is_right() -> None:
    text = (
        'histogram_quantile(0.95, sum by ("rl.run.id", le) (rate({"rl.loop.duration_bucket","cluster"="c"}[30m])))'
    )
    assert lint_query.problems(text, spellings.GOOGLE, TIMES) == []


def test_variables_of_consoles_are_no_problem() -> None:
    assert lint_query.problems('rl_train_mfu_ratio{rl_run_id=~"$run"}', spellings.PROMETHEUS, TIMES) == []


def _tile(content: dict[str, Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(tile for tile in content["mosaicLayout"]["tiles"] if kind in tile["widget"])
    return found


def _query(content: dict[str, Any]) -> dict[str, Any]:
    query: dict[str, Any] = _tile(content, "xyChart")["widget"]["xyChart"]["dataSets"][0]["timeSeriesQuery"]
    return query


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda d: d.pop("displayName"), "the dashboard has no displayName"),
        (lambda d: d.pop("dashboardFilters"), "the dashboard has no filters: nobody can choose a run"),
        (lambda d: d["mosaicLayout"].update(columns=12), "the mosaic has 12 columns, and not 48"),
        (
            lambda d: _tile(d, "xyChart").update(xPos=40),
            "Iteration time, p50, p95: it lies outside of the 48 columns",
        ),
        (lambda d: _tile(d, "xyChart").update(yPos=8), "it overlaps with Iteration time, p50, p95"),
        (lambda d: _tile(d, "xyChart")["widget"].pop("title"), "a widget: it has no title"),
        (
            lambda d: _tile(d, "xyChart")["widget"].update(title="Reward"),
            "several widgets are called 'Reward'",
        ),
        (lambda d: _query(d).update(prometheusQuery=""), "Iteration time, p50, p95: the query is empty"),
        (lambda d: _query(d).pop("unitOverride"), "Iteration time, p50, p95: it has no unit"),
        (
            lambda d: _query(d).update(unitOverride="ms"),
            "Iteration time, p50, p95: its unit is 'ms'; what the query",
        ),
        (
            lambda d: _tile(d, "xyChart")["widget"]["xyChart"].update(dataSets=[]),
            "Iteration time, p50, p95: it shows nothing",
        ),
        (
            lambda d: _tile(d, "xyChart")["widget"]["xyChart"]["dataSets"][0].pop("minAlignmentPeriod"),
            "Iteration time, p50, p95: it has no minAlignmentPeriod",
        ),
        (
            lambda d: _tile(d, "xyChart")["widget"]["xyChart"].update(thresholds=[{"value": 1, "color": "RED"}]),
            "Iteration time, p50, p95: a threshold of an xyChart has neither color nor direction",
        ),
        (
            lambda d: d["mosaicLayout"]["tiles"].extend(
                {"yPos": 1000 + n, "width": 1, "height": 1, "widget": {"title": str(n), "blank": {}}}
                for n in range(50)
            ),
            "widgets, and more than 50 are slow to open; make two dashboards",
        ),
    ],
)
def test_a_dashboard_that_is_wrong(change: Change, problem: str) -> None:
    assert lint_dashboard.problems(OVERVIEW, TIMES) == []
    content = copy.deepcopy(OVERVIEW)
    change(content)
    assert [found for found in lint_dashboard.problems(content, TIMES) if problem in found] != []


def _promql(policy: dict[str, Any]) -> dict[str, Any]:
    condition: dict[str, Any] = policy["conditions"][0]["conditionPrometheusQueryLanguage"]
    return condition


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda p: p.update(displayName="x" * 513), "displayName: 1 to 512 characters"),
        (lambda p: p.pop("combiner"), "combiner: AND, OR or AND_WITH_MATCHING_RESOURCE"),
        (lambda p: p.update(severity="PAGE"), "severity: CRITICAL, ERROR or WARNING"),
        (lambda p: p.update(conditions=p["conditions"] * 7), "conditions: 1 to 6, and there are 7"),
        (lambda p: p["conditions"][0].pop("conditionPrometheusQueryLanguage"), "a condition is not in PromQL"),
        (lambda p: _promql(p).update(query="sum("), "it does not parse: "),
        (lambda p: _promql(p).update(evaluationInterval="45s"), "evaluationInterval: a multiple of 30s"),
        (lambda p: _promql(p).update(duration="-1s"), "duration: 0s or more"),
        (lambda p: _promql(p).pop("disableMetricValidation"), "disableMetricValidation: true"),
        (lambda p: p["documentation"].update(content="Help!"), "documentation: no ## Meaning"),
        (lambda p: p["documentation"].update(content="x" * 8193), "documentation: more than 8192 characters"),
        (lambda p: p["documentation"].update(content="${PROJECT}"), "documentation: ${…} would be taken"),
        (lambda p: p["documentation"].update(mimeType="text/plain"), "documentation: mimeType: text/markdown"),
        (lambda p: p["documentation"].update(subject="x" * 256), "documentation: subject: at most 255 bytes"),
        (
            lambda p: p["documentation"].update(links=[{"displayName": "x", "url": "y"}] * 4),
            "documentation: at most 3 links",
        ),
        (
            lambda p: p["documentation"].update(links=[{"displayName": "x" * 64, "url": "y"}]),
            "documentation: a link's name has at most 63 characters",
        ),
        (lambda p: p.update(userLabels={f"l{n}": "" for n in range(65)}), "userLabels: at most 64"),
        (lambda p: p.update(userLabels={"Team": "RL"}), "userLabels: Team: RL: lower-case letters"),
        (lambda p: p["alertStrategy"].update(autoClose="60s"), "alertStrategy: autoClose: at least 1800s"),
    ],
)
def test_a_policy_that_is_wrong(change: Change, problem: str) -> None:
    assert lint_policy.problems(POLICY, TIMES) == []
    content = copy.deepcopy(POLICY)
    change(content)
    assert [found for found in lint_policy.problems(content, TIMES) if found.startswith(problem)] != []


def test_a_policy_that_looks_back_further_than_a_condition_can() -> None:
    times = Windows(2 * 3600)
    policy = cloud_alert.render(alert.load_all()[0], Options(times))
    assert lint_policy.problems(policy, times) == ["it looks back 144000 s, and a condition can look back 86400 s"]


def test_the_command_names_the_file_and_ends_with_1(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**OVERVIEW, "dashboardFilters": []}))
    done = CliRunner().invoke(main, ["dashboards", "lint", str(path)])
    assert (done.exit_code, done.output) == (
        1,
        f"{path}: the dashboard has no filters: nobody can choose a run\n",
    )
