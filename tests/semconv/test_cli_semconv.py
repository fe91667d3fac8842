"""`rlotel semconv` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rlotel.cli.semconv import semconv
from rlotel.semconv import attributes, metrics, spans

POINT = {
    "asDouble": 1.0,
    "attributes": [{"key": key, "value": {"stringValue": "x"}} for key in ("rl.run.id", "rl.system")],
}


def capture(unit: str) -> str:
    metric = {"name": "rl.train.mfu", "unit": unit, "gauge": {"dataPoints": [POINT]}}
    return json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}) + "\n"


def invoke(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(semconv, arguments, input=text, env={"COLUMNS": "200"})


def test_list_names_every_metric_under_its_signal() -> None:
    result = invoke("list")
    assert result.exit_code == 0
    for metric in metrics.ALL:
        assert f"{metric.name} " in result.output
        assert metric.brief in result.output


def test_a_list_that_is_piped_has_a_metric_a_line() -> None:
    result = CliRunner().invoke(semconv, ["list"], env={"COLUMNS": "80"})
    for metric in metrics.ALL:
        (line,) = (line for line in result.output.splitlines() if line.startswith(f"{metric.name} "))
        assert line.rstrip().endswith(metric.brief)


def test_list_of_one_signal_has_no_other() -> None:
    result = invoke("list", "--signal", "traffic", "--json")
    assert result.exit_code == 0
    listed = json.loads(result.output)
    assert [one["name"] for one in listed] == [metric.name for metric in metrics.ALL if metric.signal == "traffic"]
    assert listed[0] == {
        "name": "rl.sample.samples",
        "instrument": "counter",
        "unit": "1",
        "brief": metrics.SAMPLE_SAMPLES.brief,
        "signal": "traffic",
        "origin": "proposal",
        "stability": "development",
        "owner": "loop",
        "attributes": {},
        "buckets": [],
        "zeros": [{}],
    }
    assert invoke("list", "--signal", "traffic").output.startswith("traffic")


def test_show_a_metric() -> None:
    result = invoke("show", "rl.sample.duration")
    assert result.exit_code == 0
    assert result.output == (
        "rl.sample.duration (metric)\n"
        "Wall time in which rollouts were made or, in the trainer, waited for.\n"
        "  instrument      histogram\n"
        "  unit            s\n"
        "  signal          latency\n"
        "  reported by     loop\n"
        "  origin          proposal\n"
        "  stability       development\n"
        "  identity        rl.run.id, rl.system, rl.system.version, rl.algorithm, rl.model.name,"
        " rl.environment.name, rl.environment.type\n"
        "  buckets         61, 0.05 to 14400\n"
        "  rl.sample.kind  required\n"
        "  error.type      conditionally required\n"
        "\n"
    )


def test_show_a_name_that_is_a_metric_and_an_attribute() -> None:
    output = invoke("show", "rl.train.steps").output
    assert "rl.train.steps (metric)" in output
    assert "counter, starts at 0" in output
    assert "rl.train.steps (attribute)" in output
    assert "used by    rl.train\n" in output


@pytest.mark.parametrize("name", [item.name for module in (metrics, spans, attributes) for item in module.ALL])
def test_show_knows_every_name(name: str) -> None:
    result = invoke("show", name)
    assert (result.exit_code, result.output.splitlines()[0].split(" ")[0]) == (0, name)


def test_show_says_which_values_are_listed() -> None:
    assert "values     generate, wait\n" in invoke("show", "rl.sample.kind").output
    assert "values     policy, value, kl_divergence, entropy, total, …\n" in invoke("show", "rl.loss.type").output
    assert "used by    every metric\n" in invoke("show", "rl.run.id").output


def test_show_an_unknown_name_gives_the_nearest_and_exits_2() -> None:
    result = invoke("show", "rl.samples.durations")
    assert result.exit_code == 2
    assert "did you mean rl.sample.duration," in result.output
    assert "did you mean rl.loop.mfu, rl.sample.mfu, rl.train.mfu?" in invoke("show", "mfu").output
    result = invoke("show", "zzz")
    assert result.exit_code == 2
    assert "`rlotel semconv list` lists what there is." in result.output


def test_check_of_clean_captures_exits_0(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    path.write_text(capture("1"))
    result = invoke("check", str(path), str(path))
    said = "Nothing breaks the model: 2 points and spans were judged.\n"
    assert (result.exit_code, result.output) == (0, said)
    result = invoke("check", "-", "--json", text=capture("1"))
    assert (result.exit_code, json.loads(result.output)) == (0, [])


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("", "no points and no spans"),
        ("\n", "no points and no spans"),
        (capture("1").replace("rl.train.mfu", "http.size"), "none of 1 points and spans is of the model"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_check_of_what_has_nothing_of_the_model_is_no_success(text: str, seen: str, options: tuple[str]) -> None:
    result = invoke("check", "-", *options, text=text)
    assert result.exit_code == 1
    assert result.stderr == f"Error: there is nothing to judge: {seen}\n"


def test_check_of_a_broken_capture_says_what_and_where_and_exits_1(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    path.write_text(capture("1") + capture("%") * 2)
    result = invoke("check", str(path))
    assert result.exit_code == 1
    header, row = (line.split() for line in result.output.splitlines() if line.strip())
    assert header == ["where", "what", "name", "how", "times"]
    assert " ".join(row) == f'{path}:2 wrong unit rl.train.mfu unit is "%", should be "1" 2'


def test_check_reads_standard_input_and_prints_json() -> None:
    result = invoke("check", "-", "--json", text=capture("%"))
    assert result.exit_code == 1
    assert json.loads(result.output) == [
        {
            "capture": "-",
            "kind": "wrong_unit",
            "name": "rl.train.mfu",
            "detail": 'unit is "%", should be "1"',
            "line": 1,
            "count": 1,
        }
    ]


def test_check_of_a_file_that_is_not_there_exits_2(tmp_path: Path) -> None:
    result = invoke("check", str(tmp_path / "none.jsonl"))
    assert result.exit_code == 2
    assert "none.jsonl" in result.output


def test_check_reports_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    path.write_bytes(capture("1").encode() + b"\xff\xfe\n")
    result = invoke("check", str(path), "--json")
    assert result.exit_code == 1
    assert [(one["kind"], one["line"]) for one in json.loads(result.output)] == [("unreadable", 2)]
