"""Recorded processes of real runs, replayed: what is reported equals what OpenRLHF did and logged."""

from collections import defaultdict
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from rlotel import conformance, otlp_json
from rlotel.integrations.openrlhf.tables import GAUGES
from rlotel.integrations.tables import Gauge

from .conftest import Openrlhf
from .replay import Replay, Trace

TRACES = Path(__file__).parent / "traces"
TRAINERS = ["0.11.2-sync.jsonl", "0.11.2-async-trainer.jsonl"]


@pytest.fixture(params=TRAINERS)
def trace(request: pytest.FixtureRequest) -> Trace:
    return Trace(TRACES / request.param)


@pytest.fixture
def replay(openrlhf: Openrlhf, trace: Trace) -> Replay:
    return Replay(openrlhf, trace)


def measured(openrlhf: Openrlhf) -> dict[tuple[str, ...], float]:
    """Every duration that was reported, summed over the run."""
    found: dict[tuple[str, ...], float] = {}
    for name in ("sample", "reward", "train", "sync", "phase", "checkpoint"):
        for point in openrlhf.telemetry.points(f"rl.{name}.duration"):
            more = ("rl.phase.name", "rl.role", "rl.sample.kind")
            key = tuple(str(point.attributes[one]) for one in more if one in point.attributes)
            found[key if name == "phase" else (name, *key)] = point.sum or 0.0
    return found


def expected(trace: Trace) -> dict[tuple[str, ...], float]:
    """The same from the calls."""
    found: dict[tuple[str, ...], float] = defaultdict(float)
    looked = 0.0  # in vain: the prompts had run out
    for seconds, _, made in trace.spent("SamplesGenerator.generate_samples"):
        looked += seconds
        if made["rollouts"]:
            found["sample", "generate"] += looked
            looked = 0.0
    for seconds, _, got in trace.spent("Queue.get"):
        if got["item"] == "rollouts":
            found["sample", "wait"] += seconds
    plain = {
        ("experience",): "RemoteExperienceMaker.make_experience_batch",
        ("advantage",): "RemoteExperienceMaker.compute_advantages_and_returns",
        ("sync",): "BasePPOTrainer.broadcast_to_vllm",
        ("evaluate",): "SamplesGenerator.generate_eval_samples",
    }
    for key, name in plain.items():
        found[key] = sum(seconds for seconds, _, _ in trace.spent(name))
    return {key: seconds for key, seconds in found.items() if seconds}


def test_durations_are_those_of_the_calls(openrlhf: Openrlhf, trace: Trace, replay: Replay) -> None:
    wanted, reported = expected(trace), measured(openrlhf)
    assert {key: reported.get(key) for key in wanted} == pytest.approx(wanted, abs=1e-6)


def test_durations_are_those_that_were_logged(openrlhf: Openrlhf, trace: Trace, replay: Replay) -> None:
    logs = [data["logs"] for data in trace.of("call", "BasePPOTrainer.save_logs_and_checkpoints")]
    reported = measured(openrlhf)
    trained = sum(one["timing/ppo_train"] for one in logs)
    for key in (key for key in reported if key[0] == "train"):
        assert reported[key] == pytest.approx(trained, abs=0.02)
    assert reported["experience",] == pytest.approx(sum(one["timing/make_experience"] for one in logs), abs=0.02)


def test_values_are_those_that_were_logged_last(openrlhf: Openrlhf, trace: Trace, replay: Replay) -> None:
    last = trace.of("call", "BasePPOTrainer.save_logs_and_checkpoints")[-1]["logs"]
    for key, gauge in GAUGES.items():
        if key in last:
            assert isinstance(gauge, Gauge)
            assert openrlhf.telemetry.value(gauge.metric, **gauge.attributes) == pytest.approx(last[key]), key


def test_counts_are_those_of_the_rollouts(openrlhf: Openrlhf, trace: Trace, replay: Replay) -> None:
    calls = trace.of("call", "RemoteExperienceMaker.make_experience_batch")
    rows = [row for data in calls for row in data["rollouts"]]
    telemetry = openrlhf.telemetry
    assert telemetry.value("rl.sample.samples") == telemetry.value("rl.sample.episodes") == len(rows)
    assert telemetry.value("rl.sample.tokens", **{"rl.token.type": "prompt"}) == sum(row[0] for row in rows)
    assert telemetry.value("rl.sample.tokens", **{"rl.token.type": "completion"}) == sum(row[1] for row in rows)
    steps = [point for point in telemetry.points("rl.train.steps") if "rl.role" in point.attributes]
    assert {point.value for point in steps} == {len(rows) / 4}


def test_every_iteration_is_one_trace_with_its_phases(openrlhf: Openrlhf, trace: Trace, replay: Replay) -> None:
    roots = [root for (root, *_) in openrlhf.telemetry.capture().traces().values() if root.span.name == "rl.loop"]
    assert [root.span.attributes["rl.loop.iteration"] for root in roots] == [
        data["global_step"] for data in trace.of("call", "BasePPOTrainer.save_logs_and_checkpoints")
    ]
    for root in roots:
        names = [
            str(node.span.attributes.get("rl.phase.name", node.span.name.removeprefix("rl.")))
            for node in root.children
        ]
        assert names[:4] == ["sample", "experience", "data", "train"]
        assert "sync" in names


def test_what_is_reported_keeps_to_the_model(openrlhf: Openrlhf, trace: Trace, replay: Replay) -> None:
    telemetry = openrlhf.telemetry
    metrics = telemetry._reader.get_metrics_data()
    assert metrics is not None
    lines = [
        otlp_json.to_line(encode_metrics(metrics)),
        otlp_json.to_line(encode_spans(telemetry._spans.get_finished_spans())),
    ]
    assert conformance.check(lines) == []


def test_the_actor_that_makes_rollouts_says_how_long_that_took(openrlhf: Openrlhf) -> None:
    trace = Trace(TRACES / "0.11.2-async-generator.jsonl")
    openrlhf.telemetry.session.recorder.process.launcher = False  # as in an actor
    Replay(openrlhf, trace)
    made = [
        seconds for seconds, _, result in trace.spent("SamplesGenerator.generate_samples") if result["consumed"]
    ]
    (point,) = openrlhf.telemetry.points("rl.sample.duration")
    assert point.attributes["rl.sample.kind"] == "generate"
    assert point.count == len(made)
    assert point.sum == pytest.approx(sum(made), abs=1e-6)
    evaluated = sum(seconds for seconds, _, _ in trace.spent("SamplesGenerator.generate_eval_samples"))
    assert measured(openrlhf)["evaluate",] == pytest.approx(evaluated, abs=1e-6)
    assert openrlhf.telemetry.points("rl.loop.duration") == []
    spans = openrlhf.telemetry.spans("rl.sample")
    assert [span.attributes["rl.loop.iteration"] for span in spans] == [1, 2]
