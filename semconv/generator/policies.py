"""The rules of the model that a schema cannot say. Each is a function from the model to what breaks it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from generator.model import IDENTITY
from generator.python import class_name, constant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from generator.model import Attribute, Metric, Model, Span, Use

# Google's Telemetry API rejects a whole point for one key outside of this.
KEY = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.]*")
METRIC = re.compile(r"[a-zA-Z][a-zA-Z0-9_:./-]*")
# These belong to Google's monitored resource; on a point its collector renames them.
RESERVED = {"location", "cluster", "namespace", "job", "instance", "project_id"}
MOST_BUCKETS = 200
# A generated line is `    brief="...",` and has to fit where the rest of the code does.
LONGEST_BRIEF = 98


def problems(model: Model, crosswalk: dict[str, Any]) -> Iterator[str]:
    """Everything that breaks a rule, in words that say what to do."""
    yield from _crosswalk(model, crosswalk)
    for rule in (_unique, _names, _briefs, _attributes, _units, _histograms, _counters, _identity, _health):
        yield from rule(model)


def _unique(model: Model) -> Iterator[str]:
    named = {
        "id": model.ids,
        "Python name of an attribute": [constant(name) for name in model.attributes],
        "Python name of an enumeration": [class_name(a.name) for a in model.attributes.values() if a.members],
        "Python name of a metric": [constant(metric.name) for metric in model.metrics],
    }
    for kind, names in named.items():
        yield from (f"{name}: used twice as {kind}" for name, count in Counter(names).items() if count > 1)
    for attribute in model.attributes.values():
        for key in ("id", "value"):
            counted = Counter(member[key] for member in attribute.members)
            yield from (f"{attribute.name}: lists {key} {value} twice" for value, n in counted.items() if n > 1)


def _names(model: Model) -> Iterator[str]:
    for name in model.attributes:
        if not KEY.fullmatch(name):
            yield f"{name}: Google rejects points with such a key; use letters, digits, _ and dots"
        if name in RESERVED:
            yield f"{name}: belongs to Google's monitored resource; choose another key"
    for metric in model.metrics:
        if not METRIC.fullmatch(metric.name):
            yield f"{metric.name}: Google rejects such a metric name"
        if metric.name.startswith("rlotel.") != (metric.signal == "rlotel"):
            yield f"{metric.name}: the signal rlotel and the namespace rlotel.* go together"
        if metric.name.startswith("hw.") and metric.origin != "opentelemetry":
            yield f"{metric.name}: hw.* is OpenTelemetry's; a name of ours is rl.*"
    ids = {f"metric.{metric.name}" for metric in model.metrics} | {f"span.{span.name}" for span in model.spans}
    for name in model.ids:
        if name.startswith(("metric.", "span.")) and name not in ids:
            yield f"{name}: the id has to be the name behind metric. or span."


def _briefs(model: Model) -> Iterator[str]:
    items: list[Attribute | Metric | Span] = [*model.attributes.values(), *model.metrics, *model.spans]
    for item in items:
        if not item.brief.endswith("."):
            yield f"{item.name}: a brief is a sentence and ends with a period"
        if len(item.brief) > LONGEST_BRIEF:
            yield f"{item.name}: a brief has {LONGEST_BRIEF} characters at most; put the rest into note"


def _attributes(model: Model) -> Iterator[str]:
    groups = [
        *model.groups.values(),
        *(metric.uses for metric in model.metrics),
        *(span.uses for span in model.spans),
    ]
    used = {use.name for uses in groups for use in uses}
    yield from (f"{name}: no metric or span uses it; remove it" for name in model.attributes if name not in used)
    for attribute in model.attributes.values():
        if attribute.closed and not attribute.members:
            yield f"{attribute.name}: closed, but lists no values"
    for metric in model.metrics:
        names = [use.name for use in _all_uses(model, metric)]
        yield from (f"{metric.name}: has {name} twice" for name, count in Counter(names).items() if count > 1)
        if "rl.loop.iteration" in names:
            yield f"{metric.name}: rl.loop.iteration on a metric makes a series an iteration; it is for spans"


def _units(model: Model) -> Iterator[str]:
    for metric in model.metrics:
        if not metric.unit and metric.origin != "nemo_rl":
            yield f"{metric.name}: has no unit; 1 is the unit of a share, {{thing}} of a count"
        if metric.name.endswith(".ratio") and (metric.unit, metric.instrument) != ("1", "gauge"):
            yield f"{metric.name}: a ratio is a gauge of unit 1"


def _histograms(model: Model) -> Iterator[str]:
    for metric in model.metrics:
        if (metric.instrument == "histogram") != bool(metric.buckets):
            yield f"{metric.name}: a histogram, and nothing else, names its buckets"
        if metric.name.endswith(".duration"):
            if (metric.instrument, metric.unit) != ("histogram", "s"):
                yield f"{metric.name}: a duration is a histogram in s"
            failed = any(use.name == "error.type" for use in metric.uses)
            if not failed and metric.name.startswith("rl."):
                yield f"{metric.name}: a duration has error.type, for the one that failed"
    for name, bounds in model.buckets.items():
        if len(bounds) > MOST_BUCKETS:
            yield f"buckets {name}: {len(bounds)} bounds, and Google takes {MOST_BUCKETS}"


def _counters(model: Model) -> Iterator[str]:
    for metric in model.metrics:
        if metric.zeros and metric.instrument != "counter":
            yield f"{metric.name}: only a counter has a known zero"


def _identity(model: Model) -> Iterator[str]:
    for metric in model.metrics:
        if IDENTITY not in metric.groups:
            yield f"{metric.name}: has to extend {IDENTITY}, since Google makes labels of point attributes only"


def _health(model: Model) -> Iterator[str]:
    """A value that is not finite is counted under its metric's name, so those names have to be listed."""
    listed = {member["value"] for member in model.attributes["rl.value.name"].members}
    health = {m.name for m in model.metrics if m.instrument == "gauge" and m.signal == "errors"}
    yield from (f"rl.value.name: does not list the gauge {name}" for name in sorted(health - listed))
    yield from (f"rl.value.name: lists {name}, no gauge of errors" for name in sorted(listed - health))
    zeros = {zero["rl.value.name"] for m in model.metrics for zero in m.zeros if "rl.value.name" in zero}
    yield from (f"rl.train.nonfinite: does not start {name} at zero" for name in sorted(listed - zeros))


def _crosswalk(model: Model, crosswalk: dict[str, Any]) -> Iterator[str]:
    ours = {*model.attributes, *(metric.name for metric in model.metrics), *(span.name for span in model.spans)}
    for row in crosswalk["rows"]:
        if row["name"] not in ours:
            yield f"crosswalk.yaml: {row['name']} is no name of ours"
        for source in row.keys() - {"name"} - crosswalk["sources"].keys():
            yield f"crosswalk.yaml: {row['name']} names the source {source}, which sources does not list"


def _all_uses(model: Model, metric: Metric) -> list[Use]:
    return [*(use for group in metric.groups for use in model.groups[group]), *metric.uses]
