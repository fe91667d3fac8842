"""Recorded runs of every release, replayed: what is reported equals what SkyRL itself measured and logged."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from rlotel import conformance, otlp_json
from rlotel.integrations.skyrl.tables import GAUGES, LENGTH, STEP, TIMERS
from rlotel.integrations.tables import several

from .conftest import Sky, watched
from .replay import Event, Replay, Trace

TRACES = sorted((Path(__file__).parent / "traces").glob("*.json"))
Measured = tuple[str, str | None, str | None]
"""A phase, its role, and the kind of a sample phase."""


class Played(NamedTuple):
    """A trace that has been replayed."""

    sky: Sky
    trace: Trace
    timed: dict[str, float]
    """Seconds that the stand-in timers measured, by name."""


@pytest.fixture(scope="module", params=TRACES, ids=[path.stem for path in TRACES])
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    trace = Trace(request.param)
    with watched(tmp_path_factory.mktemp("standins")) as sky:
        yield Played(sky, trace, Replay(sky, trace).timed)


def measured(sky: Sky) -> dict[Measured, float]:
    """Every duration that was reported, summed over the run."""
    found = {}
    for name in ("loop", "sample", "train", "sync", "phase", "checkpoint"):
        for point in sky.telemetry.points(f"rl.{name}.duration"):
            phase, role, kind = (
                point.attributes.get(f"rl.{what}") for what in ("phase.name", "role", "sample.kind")
            )
            assert point.sum is not None
            key = str(phase or name), None if role is None else str(role), None if kind is None else str(kind)
            found[key] = point.sum
    return found


def intervals(trace: Trace, name: str) -> Iterator[tuple[float, float, Event]]:
    """From when to when each call of a function was, with what it returned; those of evaluations left out."""
    began: dict[str, list[float]] = defaultdict(list)
    evaluating = False
    for event in trace.events:
        if event.name == "eval" and event.where == "main":
            evaluating = event.kind in ("start", "call")
        if event.name != name:
            continue
        if event.kind == "call":
            began[event.where].append(event.at)
        elif event.kind in ("return", "raise"):
            since = began[event.where].pop()
            if not (evaluating and event.where == "main"):
                yield since, event.at, event


def union(found: list[tuple[float, float]]) -> float:
    seconds, reached = 0.0, 0.0
    for began, ended in sorted(found):
        seconds += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return seconds


def passes(trace: Trace, model: str) -> float:
    """Seconds in which one model computed what the update needs."""
    name = "_execute_forward_pass" if trace.of("call", "_execute_forward_pass") else "forward"
    models = [event.data["model"] for event in trace.of("call", name)]
    times = [ended - began for began, ended, _ in intervals(trace, name)]
    return sum(seconds for one, seconds in zip(models, times, strict=True) if one == model)


def loops(trace: Trace) -> list[tuple[float, float]]:
    """From when to when each iteration was: from its timer's first start to the last stop before it is logged."""
    found, began, ended = [], None, 0.0
    for event in trace.events:
        if event.name == STEP and event.kind == "start" and began is None:
            began = event.at
        elif event.name == STEP and event.kind == "stop":
            ended = event.at
        elif event.kind == "log" and "trainer/global_step" in event.data["data"] and began is not None:
            found.append((began, ended))
            began = None
    return found


def expected(trace: Trace, timed: dict[str, float]) -> dict[Measured, float]:
    """The same from SkyRL's timers, and from the functions that have none."""
    found: dict[Measured, float] = defaultdict(float)
    found["loop", None, None] = sum(ended - began for began, ended in loops(trace))
    for name, seconds in timed.items():
        if (one := TIMERS.get(name)) is not None:
            found[one.phase, one.role, one.kind and one.kind.value] += seconds
    if trace.kind == "async":
        # By the iteration in which rollouts began: as long as any of them were made.
        began = [start for start, _ in loops(trace)]
        made = defaultdict(list)
        for since, until, _ in intervals(trace, "generate"):
            made[sum(start <= since for start in began)].append((since, until))
        found["sample", None, "generate"] = sum(map(union, made.values()))
    found["ref_logprob", "reference", None] = passes(trace, "ref")
    found["value", "critic", None] = passes(trace, "critic")
    found["tool", None, None] = 0.0  # compared apart
    return {key: seconds for key, seconds in found.items() if seconds}


def test_durations_equal_those_that_skyrl_measures(played: Played) -> None:
    sky, trace, timed = played
    found = measured(sky)
    found.pop(("tool", None, None))
    assert found == pytest.approx(expected(trace, timed), abs=1e-6)
    logged = sum(data.get("timing/step", 0.0) for data in trace.logged)
    assert found["loop", None, None] == pytest.approx(logged, abs=0.02)


def test_environments_are_timed_where_they_work(played: Played) -> None:
    sky, trace, _ = played
    steps = list(intervals(trace, "step"))
    if trace.kind == "sync":
        for metric, done, match in (
            ("rl.reward.duration", True, {}),
            ("rl.phase.duration", False, {"phase_name": "tool"}),
        ):
            taken = [(began, ended) for began, ended, event in steps if event.data["done"] is done]
            assert sky.value(metric, **match) == pytest.approx(union(taken), abs=1e-6)
    counted = [ended - began for began, ended, _ in steps]
    (point,) = sky.telemetry.points("rl.step.duration")
    assert point.sum is not None
    assert point.count
    assert min(counted) <= point.sum / point.count <= max(counted)


def test_counts_equal_what_generators_returned(played: Played) -> None:
    sky, trace, _ = played
    made = [event.data for _, _, event in intervals(trace, "generate") if event.kind == "return"]
    trained = trace.of("call", "fwd_logprobs_values_reward")
    tokens = sum(
        sum(event.data["lengths"][: len(event.data["lengths"]) - event.data["pad_size"]]) for event in trained
    )
    updates = [event.data["model"] for event in trace.of("call", "optim_step")]
    rows = sum(len(one["responses"]) for one in made)
    episodes = sum(sum(one.get("is_last_step", [True] * len(one["responses"]))) for one in made)
    assert {
        "samples": sky.value("rl.sample.samples"),
        "episodes": sky.value("rl.sample.episodes"),
        "prompt tokens": sky.value("rl.sample.tokens", token_type="prompt"),
        "completion tokens": sky.value("rl.sample.tokens", token_type="completion"),
        "trained tokens": sky.value("rl.train.tokens", role="actor"),
        "optimizer steps": sky.value("rl.train.steps", role="actor"),
        "turns": sky.value("rl.environment.episode.turns.mean"),
    } == {
        "samples": rows,
        "episodes": episodes,
        "prompt tokens": sum(sum(one["prompts"]) for one in made),
        "completion tokens": sum(sum(one["responses"]) for one in made),
        "trained tokens": tokens * trace.settings["trainer.update_epochs_per_batch"],
        "optimizer steps": updates.count("policy"),
        "turns": 2.0,
    }


def test_values_equal_those_that_were_logged_last(played: Played) -> None:
    sky, trace, _ = played
    last = trace.trained[-1]
    turns = trace.settings.get("generator.step_wise_trajectories")
    told = {
        key: several(gauges) for key, gauges in GAUGES.items() if key in last and not (turns and key == LENGTH)
    }
    assert told.keys() >= {
        "reward/avg_raw_reward",
        "policy/policy_loss",
        "policy/grad_norm",
        "policy/policy_entropy",
    }
    for key, gauges in told.items():
        for gauge in gauges:
            assert sky.telemetry.value(gauge.metric, **gauge.attributes) == last[key], key


def test_scores_are_those_of_the_last_evaluation_logged_or_not(played: Played) -> None:
    sky, trace, _ = played
    evaluations = trace.of("return", "eval")
    scores = evaluations[-1].data["scores"] if evaluations else {}
    found = {
        str(point.attributes["rl.evaluation.name"]): point.value
        for point in sky.telemetry.points("rl.evaluation.score")
    }
    assert found == {
        key.removeprefix("eval/"): value
        for key, value in scores.items()
        if key.startswith("eval/") and key.count("/") == 2
    }


def test_every_iteration_is_one_trace(played: Played) -> None:
    sky, trace, _ = played
    roots = [root.span for found in sky.telemetry.capture().traces().values() for root in found]
    assert [root.attributes["rl.loop.iteration"] for root in roots if root.name == "rl.loop"] == [
        data["trainer/global_step"] for data in trace.trained
    ]
    assert {root.name for root in roots} <= {"rl.loop", "rl.sync", "rl.phase", "rl.checkpoint"}


def test_what_is_reported_keeps_to_the_model(played: Played) -> None:
    sky = played.sky
    telemetry = sky.telemetry
    metrics = telemetry._reader.get_metrics_data()
    assert metrics is not None
    spans = encode_spans(telemetry._spans.get_finished_spans())
    lines = [otlp_json.to_line(encode_metrics(metrics)), otlp_json.to_line(spans)]
    assert conformance.check(lines) == []


def test_identity_is_read_from_the_configuration(played: Played) -> None:
    sky, trace, _ = played
    (point,) = sky.telemetry.points("rl.loop.duration")
    estimator = trace.settings["trainer.algorithm.advantage_estimator"]
    assert point.attributes == {
        "rl.run.id": "test",
        "rl.system": "skyrl",
        "rl.system.version": "0.0.0",
        "rl.algorithm": {"gae": "PPO", "grpo": "GRPO"}[estimator],
        "rl.model.name": "tiny-qwen2",
        "rl.environment.name": "add",
    }
