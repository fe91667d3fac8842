"""Judging telemetry by the model: what the SDK makes, written out the way OpenTelemetry's own encoders do."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rlotel.conformance import Violation, check
from rlotel.semconv import Attribute, Metric, Use, metrics, spans

RUN = {"rl.run.id": "r1", "rl.system": "custom"}
GENERATE = RUN | {"rl.sample.kind": "generate"}
Attributes = Mapping[str, str | bool | int | float]


def observe(value: float, attributes: Attributes) -> Callable[[CallbackOptions], Iterator[Observation]]:
    def callback(_options: CallbackOptions) -> Iterator[Observation]:
        yield Observation(value, dict(attributes))

    return callback


def record(meter: Meter, instrument: str, name: str, unit: str, value: float, attributes: Attributes) -> None:
    if instrument == "histogram":
        meter.create_histogram(name, unit).record(value, dict(attributes))
    elif instrument == "counter":
        meter.create_counter(name, unit).add(value, dict(attributes))
    elif instrument == "updowncounter":
        meter.create_up_down_counter(name, unit).add(value, dict(attributes))
    else:
        meter.create_observable_gauge(name, [observe(value, attributes)], unit)


def points(*recorded: tuple[str, str, str, float, Attributes]) -> str:
    """One line of OTLP JSON with the given points: instrument, name, unit, value, attributes."""
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader], resource=Resource({})).get_meter("test")
    for one in recorded:
        record(meter, *one)
    data = reader.get_metrics_data()
    assert data is not None
    return json.dumps(MessageToDict(encode_metrics(data)))


def ended(*started: tuple[str, Attributes], resource: Attributes = RUN) -> str:
    """One line of OTLP JSON with the given spans: name and attributes."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource(dict(resource)), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for name, attributes in started:
        provider.get_tracer("test").start_span(name, attributes=dict(attributes)).end()
    body = MessageToDict(encode_spans(exporter.get_finished_spans()))
    for scope in body["resourceSpans"][0]["scopeSpans"]:
        for span in scope["spans"]:
            for key in ("traceId", "spanId"):
                span[key] = base64.b64decode(span[key]).hex()
    return json.dumps(body)


def some_value(attribute: Attribute) -> str | bool | int | float:
    if attribute.members:
        return attribute.members[0]
    return attribute.examples[0] if attribute.examples else True


def required(uses: tuple[Use, ...]) -> dict[str, Any]:
    return {use.attribute.name: some_value(use.attribute) for use in uses if use.requirement == "required"}


def everything(uses: tuple[Use, ...]) -> dict[str, Any]:
    return {use.attribute.name: some_value(use.attribute) for use in uses}


def of(metric: Metric, attributes: Attributes) -> tuple[str, str, str, float, Attributes]:
    return metric.instrument, metric.name, metric.unit, 1.0, attributes


def test_all_of_the_model_with_the_least_and_with_the_most_it_may_carry_breaks_nothing() -> None:
    least = points(*(of(metric, RUN | required(metric.attributes)) for metric in metrics.ALL))
    most = points(*(of(metric, RUN | everything(metric.attributes)) for metric in metrics.ALL))
    traces = ended(*((span.name, everything(span.attributes)) for span in spans.ALL))
    assert check([least, most, traces]) == []


BROKEN: dict[str, tuple[tuple[str, str, str, float, Attributes], str, str]] = {
    "an unknown metric": (
        ("histogram", "rl.samples.duration", "s", 1.0, RUN),
        "unknown_name",
        "the metric rl.samples.duration is not in the model; did you mean rl.sample.duration?",
    ),
    "an unknown metric like no other": (
        ("gauge", "rlotel.zzz", "1", 1.0, RUN),
        "unknown_name",
        "the metric rlotel.zzz is not in the model",
    ),
    "milliseconds": (
        ("histogram", "rl.loop.duration", "ms", 34500.0, RUN),
        "wrong_unit",
        'unit is "ms", should be "s"',
    ),
    "a gauge for a histogram": (
        ("gauge", "rl.loop.duration", "s", 34.5, RUN),
        "wrong_instrument",
        "instrument is gauge, should be histogram",
    ),
    "a sum that may fall for one that may not": (
        ("updowncounter", "rl.train.steps", "1", 4.0, RUN),
        "wrong_instrument",
        "instrument is updowncounter, should be counter",
    ),
    "no run": (
        ("histogram", "rl.loop.duration", "s", 1.0, {"rl.system": "custom"}),
        "missing_attribute",
        "rl.run.id is missing; every point carries it",
    ),
    "no kind of sample": (
        ("histogram", "rl.sample.duration", "s", 1.0, RUN),
        "missing_attribute",
        "rl.sample.kind is missing",
    ),
    "an iteration on a metric": (
        ("histogram", "rl.loop.duration", "s", 1.0, RUN | {"rl.loop.iteration": 7}),
        "undeclared_attribute",
        "rl.loop.iteration is not one of its attributes",
    ),
    "OpenTelemetry's attribute where it does not belong": (
        ("gauge", "rl.entropy", "", 1.0, RUN | {"error.type": "TimeoutError"}),
        "undeclared_attribute",
        "error.type is not one of its attributes",
    ),
    "an attribute nobody knows": (
        ("histogram", "rl.loop.duration", "s", 1.0, RUN | {"rl.enviroment.name": "gsm8k"}),
        "undeclared_attribute",
        "the attribute rl.enviroment.name is not in the model; did you mean rl.environment.name?",
    ),
    "a value outside a closed list": (
        ("histogram", "rl.sample.duration", "s", 1.0, RUN | {"rl.sample.kind": "waiting"}),
        "unlisted_value",
        'rl.sample.kind is "waiting", should be one of generate, wait',
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_point_is_reported(case: str) -> None:
    point, kind, detail = BROKEN[case]
    assert [(v.kind, v.name, v.detail, v.line, v.count) for v in check([points(point)])] == [
        (kind, point[1], detail, 1, 1)
    ]


@pytest.mark.parametrize(("metric", "field"), [(metrics.TRAIN_MFU, "asDouble"), (metrics.LOOP_DURATION, "sum")])
@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_a_value_that_is_not_finite_is_reported(metric: Metric, field: str, value: str) -> None:
    # Written into the JSON, because some versions of the SDK drop such a value themselves.
    line = points(of(metric, RUN)).replace(f'"{field}": 1.0', f'"{field}": "{value}"')
    detail = "has a value that is not finite; such a value should be left out"
    assert check([line]) == [Violation("not_finite", metric.name, detail, line=1)]


def test_open_lists_and_others_attributes_and_metrics_pass() -> None:
    line = points(
        ("histogram", "rl.phase.duration", "s", 1.0, RUN | {"rl.phase.name": "tool_calls", "k8s.pod.name": "p"}),
        ("gauge", "vllm.num_requests_running", "1", 1.0, {}),
        ("counter", "gen_ai.client.token.usage", "{token}", 1.0, {"rl.nonsense": "x"}),
    )
    assert check([line, ended(("llm_request", {"rl.nonsense": "x"}))]) == []


def test_another_programs_hardware_is_judged_by_unit_and_instrument_alone() -> None:
    theirs = points(("gauge", "hw.power", "W", 350.0, {"hw.id": "psu0"}))
    assert check([theirs]) == []
    wrong = points(("counter", "hw.power", "mW", 350.0, {"hw.id": "psu0"}))
    assert [(v.kind, v.name) for v in check([wrong])] == [
        ("wrong_unit", "hw.power"),
        ("wrong_instrument", "hw.power"),
    ]
    ours = points(("gauge", "hw.power", "W", 350.0, RUN | {"hw.type": "gpu"}))
    assert [(v.kind, v.detail) for v in check([ours])] == [("missing_attribute", "hw.id is missing")]


def test_broken_spans_are_reported() -> None:
    line = ended(
        ("rl.loop", {}),
        ("rl.grpo.step", {}),
        ("rl.samples", {}),
        ("rl.phase", {"rl.phase.name": "data", "rl.sync.bytes": 1}),
    )
    assert [(v.kind, v.name, v.detail) for v in check([line])] == [
        ("missing_attribute", "rl.loop", "rl.loop.iteration is missing"),
        ("unknown_name", "rl.grpo.step", "the span rl.grpo.step is not in the model"),
        ("unknown_name", "rl.samples", "the span rl.samples is not in the model; did you mean rl.sample?"),
        ("undeclared_attribute", "rl.phase", "rl.sync.bytes is not one of its attributes"),
    ]


def test_a_span_has_its_identity_from_its_resource_or_of_its_own() -> None:
    nobodys = ended(("rl.reward", {}), resource={})
    assert [(v.kind, v.detail) for v in check([nobodys])] == [
        ("missing_attribute", "rl.run.id is missing; its Resource carries it"),
        ("missing_attribute", "rl.system is missing; its Resource carries it"),
    ]
    assert check([ended(("rl.reward", RUN), resource={})]) == []


def test_one_violation_is_counted_and_says_where_it_was_first() -> None:
    good = points(("histogram", "rl.loop.duration", "s", 1.0, RUN))
    bad = points(
        ("gauge", "rl.train.mfu", "%", 38.2, RUN | {"rl.role": "actor"}),
    )
    assert check([good, "", bad, bad, good, bad]) == [
        Violation("wrong_unit", "rl.train.mfu", 'unit is "%", should be "1"', line=3, count=3)
    ]


def test_lines_that_cannot_be_read_are_reported_and_the_others_are_judged() -> None:
    bad = points(("gauge", "rl.train.mfu", "%", 38.2, RUN))
    found = check([bad, '{"resourceMetrics": [', '{"other": 1}', "[1]", '{"resourceSpans": 3}', bad])
    assert [(v.kind, v.line, v.count) for v in found] == [
        ("wrong_unit", 1, 2),
        ("unreadable", 2, 1),
        ("unreadable", 3, 2),
        ("unreadable", 5, 1),
    ]
    assert found[2].detail == (
        "no OTLP export request: none of resourceMetrics, resourceSpans, resourceLogs in it"
    )


def snake(node: Any) -> Any:
    """Keys the way protobuf spells them, which some exporters keep."""
    if isinstance(node, list):
        return [snake(child) for child in node]
    if isinstance(node, dict):
        return {"".join(f"_{c.lower()}" if c.isupper() else c for c in k): snake(v) for k, v in node.items()}
    return node


def test_keys_in_snake_case_are_read() -> None:
    line = points(("histogram", "rl.loop.duration", "ms", 1.0, RUN))
    spelled = json.dumps(snake(json.loads(line)))
    assert "resource_metrics" in spelled
    assert "resourceMetrics" not in spelled
    assert [v.kind for v in check([spelled])] == ["wrong_unit"]


@pytest.mark.parametrize("wrap", [lambda body: body, lambda body: [body]], ids=["one request", "an array"])
def test_a_request_over_many_lines_is_read_whole(wrap: Callable[[Any], Any]) -> None:
    line = points(("histogram", "rl.loop.duration", "ms", 1.0, RUN))
    text = json.dumps(wrap(json.loads(line)), indent=2)
    assert [(v.kind, v.line) for v in check(text.splitlines())] == [("wrong_unit", 1)]


def test_several_signals_in_one_object_are_all_judged() -> None:
    body = json.loads(points(("histogram", "rl.loop.duration", "ms", 1.0, RUN)))
    body |= json.loads(ended(("rl.loop", {})))
    assert [v.kind for v in check([json.dumps(body)])] == ["wrong_unit", "missing_attribute"]


def test_logs_and_nothing_break_nothing() -> None:
    assert check(['{"resourceLogs": [{"scopeLogs": []}]}']) == []
    assert check([]) == []
    assert check(["", " \n"]) == []
