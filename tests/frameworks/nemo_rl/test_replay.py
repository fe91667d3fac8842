"""Recorded runs of every version, replayed: what is reported equals what NeMo RL itself measured and logged."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from rlotel import conformance, otlp_json
from rlotel.capture import SpanNode
from rlotel.integrations.nemo_rl.tables import STEP, TIMERS

from .conftest import Nemo
from .replay import Event, Replay, Trace

TRACES = sorted((Path(__file__).parent / "traces").glob("*.json"))
CONFIG = {
    "grpo": {"num_prompts_per_step": 2, "num_generations_per_prompt": 2},
    "policy": {
        "model_name": "Qwen/Qwen3-0.6B",
        "train_global_batch_size": 4,
        "generation": {"backend": "vllm"},
    },
    "cluster": {"num_nodes": 1, "gpus_per_node": 2},
    "checkpointing": {"enabled": True, "checkpoint_dir": "/results"},
}


class Measured(NamedTuple):
    """What is timed."""

    phase: str
    role: str | None = None
    kind: str | None = None
    """Of a sample phase; of a checkpoint, whether it blocks."""


@pytest.fixture(params=TRACES, ids=[path.stem for path in TRACES])
def trace(request: pytest.FixtureRequest) -> Trace:
    return Trace(request.param)


@pytest.fixture
def replay(nemo: Nemo, trace: Trace) -> Replay:
    return Replay(nemo, trace, master_config=CONFIG, task_to_env={"math": None}, grpo_save_state=None)


def outside(label: str, events: list[Event]) -> Iterator[Event]:
    """What happened while a timer was not running."""
    running = False
    for event in events:
        if event.name == label:
            running = event.kind == "start"
        elif not running:
            yield event


def calls(name: str, unless: str, events: list[Event]) -> float:
    """Seconds in calls of a function, those left out that are inside of a timer."""
    signs = {"call": -1, "return": 1}
    return sum(signs[event.kind] * event.at for event in outside(unless, events) if event.name == name)


def iterations(events: list[Event]) -> float:
    """Seconds from the first start of each iteration's timer to its last stop before it was logged."""
    seconds, first, last = 0.0, None, 0.0
    for event in events:
        if event.name == STEP and event.kind == "start" and first is None:
            first = event.at
        elif event.name == STEP and event.kind == "stop":
            last = event.at
        elif event.name == "timing/train" and first is not None:
            seconds, first = seconds + last - first, None
    return seconds


def measured(nemo: Nemo) -> dict[Measured, float]:
    """Every duration that was reported, summed over the run."""
    found = {}
    for name in ("loop", "sample", "reward", "train", "sync", "phase", "checkpoint"):
        for point in nemo.telemetry.points(f"rl.{name}.duration"):
            kind = point.attributes.get("rl.sample.kind", point.attributes.get("rl.checkpoint.blocking"))
            phase, role = point.attributes.get("rl.phase.name", name), point.attributes.get("rl.role")
            key = Measured(str(phase), None if role is None else str(role), None if kind is None else str(kind))
            assert point.sum is not None
            found[key] = point.sum
    return found


def expected(trace: Trace, timed: dict[str, float]) -> dict[Measured, float]:
    """The same from NeMo RL's timers, and from the functions that have none."""
    found: dict[Measured, float] = defaultdict(float)
    found[Measured("loop")] = iterations(trace.events)
    for label, seconds in timed.items():
        if (one := TIMERS.get(label)) is not None:
            kind = "True" if one.phase == "checkpoint" else one.kind
            found[Measured(one.phase, one.role, None if kind is None else str(kind))] += seconds
    found[Measured("reward")] = calls("calculate_rewards", "total_validation_time", trace.events)
    found[Measured("ref_logprob", "reference")] = calls("get_reference_policy_logprobs", "", trace.events)
    found[Measured("sync")] += calls("refit_policy_generation", "weight_sync", trace.events)
    if begun := trace.of("call", "begin_finalization"):
        ended = trace.of("return", "_rename_checkpoint")
        found[Measured("checkpoint", None, "False")] = sum(event.at for event in ended) - sum(
            event.at for event in begun
        )
    return {key: seconds for key, seconds in found.items() if seconds}


def test_durations_equal_those_that_nemo_rl_measures(nemo: Nemo, trace: Trace, replay: Replay) -> None:
    assert measured(nemo) == pytest.approx(expected(trace, replay.timed), abs=1e-6)
    if len(trace.of("start", STEP)) == len(trace.logged("timing/train")):
        assert measured(nemo)[Measured("loop")] == pytest.approx(replay.timed[STEP], abs=1e-6)
    logged = [metrics["policy_training"] for metrics in trace.logged("timing/train")]
    assert measured(nemo)[Measured("train", "actor")] == pytest.approx(sum(logged), abs=1e-3)


def test_counts_and_values_equal_those_that_nemo_rl_logs(nemo: Nemo, trace: Trace, replay: Replay) -> None:
    results = [metrics for metrics in trace.logged("train") if "loss" in metrics]
    last, validation = results[-1], trace.logged("validation")[-1]
    trained = [event.data["lengths"] for event in trace.of("call", "train")]
    made = [
        rollout
        for event in outside("total_validation_time", trace.events)
        for rollout in event.data.get("rollouts", ())
        if event.kind == "return"
    ]
    rows, generated = sum(map(len, trained)), sum(4 * metrics["mean_gen_tokens_per_sample"] for metrics in results)
    tokens = sum(map(sum, trained))
    assert tokens == sum(metrics["total_num_tokens"] for metrics in results)
    if made:
        rows, generated = len(made), sum(count for one in made for count, is_generated in one if is_generated)
        tokens = sum(count for one in made for count, _ in one)

    def value(name: str, **match: str) -> float | None:
        return nemo.telemetry.value(name, **{f"rl.{key}".replace("_", "."): match[key] for key in match})

    assert {
        "samples": value("rl.sample.samples"),
        "episodes": value("rl.sample.episodes"),
        "steps": value("rl.sample.steps"),
        "prompt tokens": value("rl.sample.tokens", token_type="prompt"),
        "completion tokens": value("rl.sample.tokens", token_type="completion"),
        "trained tokens": value("rl.train.tokens", role="actor"),
        "optimizer steps": value("rl.train.steps", role="actor"),
        "FLOPs": value("rl.train.flops", role="actor"),
        "loss": value("rl.train.loss"),
        "reward": value("rl.environment.reward.mean"),
        "length": value("rl.environment.episode.length.mean"),
        "turns": value("rl.environment.episode.turns.mean"),
        "truncated": value("rl.sample.truncated.ratio"),
        "staleness": value("rl.sample.staleness"),
        "KL": value("rl.kl.divergence", kl_reference="reference"),
        "KL to rollouts": value("rl.kl.divergence", kl_reference="rollout"),
        "entropy": value("rl.entropy"),
        "norm": value("rl.grad_norm", role="actor"),
        "rate": value("rl.learning_rate", role="actor"),
        "accuracy": value("rl.evaluation.score", evaluation_name="accuracy"),
    } == {
        "samples": rows,
        "episodes": rows,
        "steps": rows,  # one turn each
        "prompt tokens": tokens - generated,
        "completion tokens": generated,
        "trained tokens": sum(map(sum, trained)),
        "optimizer steps": len(results),
        "FLOPs": 1e12 * len(results),
        "loss": last["loss"],
        "reward": last["reward"],
        "length": last["mean_gen_tokens_per_sample"],
        "turns": last["avg_turns_per_sample"],
        "truncated": last["truncation_rate"],
        "staleness": last.get("avg_trajectory_age"),
        "KL": last["kl_penalty"],
        "KL to rollouts": last["gen_kl_error"],
        "entropy": last["approx_entropy"],
        "norm": last["grad_norm"],
        "rate": last["lr"],
        "accuracy": validation["accuracy"],
    }


def test_every_iteration_is_one_trace(nemo: Nemo, trace: Trace, replay: Replay) -> None:
    roots = [root.span for (root,) in nemo.telemetry.capture().traces().values() if root.span.name == "rl.loop"]
    assert [root.attributes["rl.loop.iteration"] for root in roots] == [
        event.data["step"] for event in trace.of("log", "timing/train")
    ]


def test_what_is_reported_keeps_to_the_model(nemo: Nemo, trace: Trace, replay: Replay) -> None:
    telemetry = nemo.telemetry
    metrics = telemetry._reader.get_metrics_data()
    assert metrics is not None
    spans = encode_spans(telemetry._spans.get_finished_spans())
    lines = [otlp_json.to_line(encode_metrics(metrics)), otlp_json.to_line(spans)]
    assert conformance.check(lines) == []


def test_identity_is_read_from_the_configuration(nemo: Nemo, trace: Trace, replay: Replay) -> None:
    (point,) = nemo.telemetry.points("rl.loop.duration")
    assert point.attributes == {
        "rl.run.id": "test",
        "rl.system": "nemo-rl",
        "rl.system.version": "0.0.0",
        "rl.algorithm": "GRPO",
        "rl.model.name": "Qwen/Qwen3-0.6B",
        "rl.environment.name": "math",
    }


def test_mfu_is_that_of_the_update(nemo: Nemo, trace: Trace, replay: Replay) -> None:
    theirs = trace.logged("performance")[-1]["train_fp_utilization"]
    assert nemo.telemetry.value("rl.train.mfu") == pytest.approx(theirs, rel=1e-3)


def told(node: SpanNode) -> str:
    attributes = node.span.attributes
    name = attributes.get("rl.phase.name", node.span.name.removeprefix("rl."))
    return "/".join(str(part) for part in (name, attributes.get("rl.role")) if part is not None)


def tree(nodes: list[SpanNode]) -> list[object]:
    return [(told(node), tree(node.children)) if node.children else told(node) for node in nodes]


def test_the_trace_of_an_iteration_shows_its_phases(nemo: Nemo) -> None:
    Replay(nemo, Trace(TRACES[-1].with_name("main-sync.json")), master_config=CONFIG)
    _, second, third = (tree(root.children) for (root,) in nemo.telemetry.capture().traces().values())
    assert second == [
        "data",
        ("offload", ["sync"]),
        ("sample", ["reward"]),
        "advantage",
        "data",
        "offload",
        ("logprob", ["ref_logprob/reference"]),
        "advantage",
        "offload",
        "train/actor",
        "sync",  # for the validation, without a timer
        "evaluate",
        "checkpoint",
        "checkpoint",  # its end, in a thread
    ]
    assert third[:2] == ["data", "offload"]  # the weights have moved
