"""What `semconv/generate.py` writes, and what it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "semconv" / "model"
SCHEMA: dict[str, Any] = json.loads((ROOT / "semconv" / "schema.json").read_text())

GOOD = """\
groups:
  - id: metric.rl.good
    type: metric
    metric_name: rl.good
    instrument: gauge
    unit: "1"
    stability: development
    brief: A metric as it should be.
    extends: rl.identity
    annotations: {rlotel: {signal: traffic, origin: rlotel, owner: loop}}
"""

BREAKS_POLICIES = """\
groups:
  - id: registry.broken
    type: attribute_group
    display_name: Broken
    brief: Attributes that break rules.
    attributes:
      - {id: job, type: string, stability: development, brief: Taken by Google's monitored resource.}
      - {id: rl-run/id, type: string, stability: development, brief: Google rejects the point.}
      - {id: rl.unused, type: string, stability: development, brief: Nobody uses it}
      - id: rl.word
        type:
          members:
            - {id: a, value: a, stability: development}
            - {id: b, value: a, stability: development}
        stability: development
        brief: Lists a value twice.
      - id: rl.open
        type: string
        stability: development
        brief: Closed, but lists nothing.
        annotations: {rlotel: {closed: true}}
  - id: rl.agents
    type: attribute_group
    brief: A group that says nothing of the run.
    attributes: [{ref: rl.agent.count, requirement_level: required}]
  - id: metric.rl.other
    type: metric
    metric_name: "rl broken"
    instrument: histogram
    unit: ""
    stability: development
    brief: A metric that breaks rules, with a brief that goes on and on until it fits no line that has an end.
    extends: rl.agents
    attributes: &all
      - {ref: job, requirement_level: required}
      - {ref: rl-run/id, requirement_level: required}
      - {ref: rl.word, requirement_level: required}
      - {ref: rl.word, requirement_level: required}
      - {ref: rl.open, requirement_level: required}
      - {ref: rl.loop.iteration, requirement_level: required}
    annotations: {rlotel: {signal: rlotel, origin: rlotel, owner: loop}}
  - id: metric.rl.wrong.ratio
    type: metric
    metric_name: rl.wrong.ratio
    instrument: counter
    unit: "%"
    stability: development
    brief: A ratio that is none.
    extends: rl.identity
    annotations: {rlotel: {signal: errors, origin: rlotel, owner: loop}}
  - id: metric.rl.wrong.duration
    type: metric
    metric_name: rl.wrong.duration
    instrument: gauge
    unit: ms
    stability: development
    brief: A duration that is none.
    extends: rl.identity
    annotations: {rlotel: {signal: errors, origin: rlotel, owner: loop, starts_at_zero: true}}
  - id: metric.hw.ours
    type: metric
    metric_name: hw.ours
    instrument: gauge
    unit: "1"
    stability: development
    brief: A name that is OpenTelemetry's.
    extends: rl.identity
    annotations: {rlotel: {signal: saturation, origin: rlotel, owner: loop}}
  - id: metric.hw.ours
    type: metric
    metric_name: hw.ours
    instrument: gauge
    unit: "1"
    stability: development
    brief: A name that is there already.
    extends: rl.identity
    annotations: {rlotel: {signal: saturation, origin: opentelemetry, owner: loop}}
"""

POLICY_MESSAGES = """\
crosswalk.yaml: rl.gone is no name of ours
crosswalk.yaml: rl.gone names the source nobody, which sources does not list
metric.hw.ours: used twice as id
HW_OURS: used twice as Python name of a metric
rl.word: lists value a twice
job: belongs to Google's monitored resource; choose another key
rl-run/id: Google rejects points with such a key; use letters, digits, _ and dots
rl broken: Google rejects such a metric name
rl broken: the signal rlotel and the namespace rlotel.* go together
hw.ours: hw.* is OpenTelemetry's; a name of ours is rl.*
metric.rl.other: the id has to be the name behind metric. or span.
rl.unused: a brief is a sentence and ends with a period
rl broken: a brief has 98 characters at most; put the rest into note
rl.unused: no metric or span uses it; remove it
rl.open: closed, but lists no values
rl broken: has rl.word twice
rl broken: rl.loop.iteration on a metric makes a series an iteration; it is for spans
rl broken: has no unit; 1 is the unit of a share, {thing} of a count
rl.wrong.ratio: a ratio is a gauge of unit 1
rl broken: a histogram, and nothing else, names its buckets
rl.wrong.duration: a duration is a histogram in s
rl.wrong.duration: a duration has error.type, for the one that failed
buckets too_many: 534 bounds, and Google takes 200
rl.wrong.duration: only a counter has a known zero
rl broken: has to extend rl.identity, since Google makes labels of point attributes only
rl.value.name: does not list the gauge rl.wrong.duration
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what the generator reads and writes."""
    for folder in ("semconv", "rlotel/semconv"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "README.md", tmp_path)
    return tmp_path


def generate(root: Path, *arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, str(ROOT / "semconv" / "generate.py"), "--root", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_generated_files_are_fresh() -> None:
    assert generate(ROOT, "--check") == (0, "", "")


def test_check_lists_stale_files_and_leaves_them(copy: Path) -> None:
    (copy / "semconv" / "model" / "good.yaml").write_text(GOOD)
    before = (copy / "rlotel/semconv/metrics.py").read_text()
    stale = "stale README.md\nstale semconv/README.md\nstale rlotel/semconv/metrics.py\n"
    assert generate(copy, "--check") == (1, stale, "")
    assert (copy / "rlotel/semconv/metrics.py").read_text() == before
    assert generate(copy) == (0, stale.replace("stale", "wrote"), "")
    assert 'GOOD = Metric(\n    name="rl.good",' in (copy / "rlotel/semconv/metrics.py").read_text()
    assert generate(copy, "--check") == (0, "", "")


def test_generated_python_is_formatted_and_says_how_it_was_made() -> None:
    for name in ("attributes", "metrics", "spans"):
        path = ROOT / "rlotel" / "semconv" / f"{name}.py"
        assert "python semconv/generate.py" in path.read_text().splitlines()[0]
        assert all(len(line) <= 110 for line in path.read_text().splitlines())


@pytest.mark.parametrize("path", sorted(MODEL.glob("*.yaml")), ids=lambda path: path.name)
def test_every_file_of_the_model_keeps_to_the_schema(path: Path) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert validator.is_valid(yaml.safe_load(path.read_text())) == (path.name != "manifest.yaml")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("instrument", "summary"),
        ("unit", None),
        ("unit", 1),
        ("brief", ""),
        ("type", "event"),
        ("colour", "red"),
        ("attributes", [{"ref": "rl.phase.nam", "requirement_level": "required"}]),
        ("attributes", [{"ref": "rl.phase.name", "requirement_level": "sometimes"}]),
        ("attributes", [{"ref": "rl.phase.name"}]),
        ("annotations", {"rlotel": {"signal": "traffic", "origin": "rlotel"}}),
        ("annotations", {"rlotel": {"signal": "traffic", "origin": "rlotel", "owner": "loop", "buckets": "mine"}}),
    ],
)
def test_the_schema_refuses_a_broken_metric(key: str, value: object) -> None:
    content = yaml.safe_load(GOOD)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert validator.is_valid(content)
    content["groups"][0][key] = value
    assert not validator.is_valid(content)


def test_the_generator_says_where_a_file_breaks_the_schema(copy: Path) -> None:
    broken = GOOD.replace("gauge", "gage") + "    attributes: [{ref: rl.phase.nam, requirement_level: required}]\n"
    (copy / "semconv" / "model" / "good.yaml").write_text(broken)
    code, out, err = generate(copy)
    assert (code, out) == (1, "")
    assert err == (
        "good.yaml: metric.rl.good > attributes > 0 > ref: 'rl.phase.nam' is unknown;"
        " did you mean rl.phase.name or rl.value.name or rl.model.name?\n"
        "good.yaml: metric.rl.good > instrument: 'gage' is unknown; did you mean gauge?\n"
    )


def test_the_generator_lists_every_broken_policy(copy: Path) -> None:
    (copy / "semconv" / "model" / "zz.yaml").write_text(BREAKS_POLICIES)
    with (copy / "semconv" / "buckets.yaml").open("a") as buckets:
        buckets.write("too_many: {first: 1, ratio: 1.01, last: 200}\n")
    with (copy / "semconv" / "crosswalk.yaml").open("a") as crosswalk:
        crosswalk.write("  - {name: rl.gone, nobody: same}\n")
    assert generate(copy) == (1, "", POLICY_MESSAGES)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"extends": "rl.nobody"}, "metric.rl.good: extends rl.nobody, which is no group of attributes\n"),
        (
            {"starts_at_zero": [{"rl.phase.name": ["nap"]}]},
            "metric.rl.good: starts_at_zero lists rl.phase.name ['nap'], which it cannot have\n",
        ),
        (
            {"starts_at_zero": True, "attributes": [{"ref": "error.type", "requirement_level": "required"}]},
            "metric.rl.good: starts at zero, but error.type lists no values\n",
        ),
    ],
)
def test_the_generator_refuses_what_does_not_exist(copy: Path, edit: dict[str, Any], message: str) -> None:
    content = yaml.safe_load(GOOD)
    group = content["groups"][0] | edit | {"instrument": "counter"}
    zeros = group.pop("starts_at_zero", None)
    if zeros:
        group["annotations"]["rlotel"]["starts_at_zero"] = zeros
    (copy / "semconv" / "model" / "good.yaml").write_text(yaml.safe_dump({"groups": [group]}))
    assert generate(copy) == (1, "", message)


def test_buckets_too_fine_for_their_digits_are_refused(copy: Path) -> None:
    (copy / "semconv" / "buckets.yaml").write_text("few: {first: 1, ratio: 1.05, last: 100, digits: 1}\n")
    assert generate(copy) == (1, "", "buckets from 1: 1 digits are too few for a ratio of 1.05\n")
