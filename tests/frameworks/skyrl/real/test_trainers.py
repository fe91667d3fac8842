"""SkyRL's trainers: traces, durations, counts and values are those of the run, as it measured and logged them."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from rlotel.integrations.skyrl.tables import GAUGES, TIMERS
from rlotel.integrations.tables import several
from tests.frameworks.running import Run, phase, seconds
from tests.frameworks.skyrl.real.conftest import run

Runs = ("synchronous", "asynchronous", "dynamic")
BUSY = 0.25
"""Seconds that a busy machine may come in between."""


@pytest.fixture(params=Runs)
def seen(request: pytest.FixtureRequest) -> Run:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Run)
    return found


def timings(seen: Run) -> list[dict[str, float]]:
    """What SkyRL measured, iteration by iteration."""
    return [line["data"] for line in seen.logged if "timing/step" in line["data"]]


def trained(seen: Run) -> list[dict[str, Any]]:
    """What it logged of them; the asynchronous trainer logs times apart."""
    return [line["data"] for line in seen.logged if "trainer/global_step" in line["data"]]


def test_durations_are_skyrls_own(seen: Run) -> None:
    over: dict[str, list[float]] = defaultdict(list)
    for root, data in zip(seen.loops, timings(seen), strict=True):
        ours: dict[tuple[str, object, object], float] = defaultdict(float)
        for node in root.children:
            known = node.span.attributes
            ours[phase(node.span), known.get("rl.role"), known.get("rl.sample.kind")] += seconds(node.span)
        for name, timed in TIMERS.items():
            key = timed.phase, timed.role, timed.kind and timed.kind.value
            if timed.same and f"timing/{name}" in data and key in ours and timed.phase != "data":
                over[name].append(ours[key] - data[f"timing/{name}"])
        if data is not timings(seen)[0]:
            over["step"].append(seconds(root.span) - data["timing/step"])
    assert over.keys() >= {"step", "policy_train", "sync_weights", "fwd_logprobs_values_reward"}
    for name, differences in over.items():
        assert min(differences) > -0.001, name
        assert min(differences) < 0.001, name
        assert max(differences) < BUSY, name


def test_values_are_those_that_were_logged(seen: Run) -> None:
    last = trained(seen)[-1]
    told = [(key, gauge) for key, gauges in GAUGES.items() if key in last for gauge in several(gauges)]
    assert {key for key, _ in told} >= {"reward/avg_raw_reward", "generate/avg_num_tokens", "policy/policy_loss"}
    for key, gauge in told:
        assert seen.gauge(gauge.metric.name, **gauge.attributes)[-1] == pytest.approx(last[key]), key


def test_environments_are_timed_by_their_own_work(seen: Run) -> None:
    taken = seen.total("rl.reward.duration")
    assert 0 < taken <= seen.worked("reward")
    assert 0 < seen.total("rl.phase.duration", **{"rl.phase.name": "tool"}) <= seen.worked("tool")
    assert seen.total("rl.sample.steps") == 2 * seen.total("rl.sample.episodes")
    assert seen.gauge("rl.environment.episode.turns.mean")[-1] == 2.0


def test_updates_are_counted(seen: Run) -> None:
    iterations = len(trained(seen))
    minibatches = 1 if any("async/staleness_mean" in data for data in trained(seen)) else 2
    assert seen.total("rl.train.steps", **{"rl.role": "actor"}) == 2 * minibatches * iterations
    assert seen.worked("train policy") <= seen.total("rl.train.duration", **{"rl.role": "actor"})


def test_a_synchronous_iteration_counts_what_it_logs(synchronous: Run) -> None:
    data = trained(synchronous)
    rows = 8 * len(data)
    completions = sum(8 * one["generate/avg_assistant_tokens"] for one in data)
    tokens = sum(one["trainer/tokens_per_second_per_gpu"] * one["timing/train_critic_and_policy"] for one in data)
    assert synchronous.total("rl.sample.samples") == rows
    assert synchronous.total("rl.sample.episodes") == rows
    assert synchronous.total("rl.sample.tokens", **{"rl.token.type": "completion"}) == completions
    assert synchronous.total("rl.sample.tokens") == pytest.approx(tokens)
    for role in ("actor", "critic"):
        assert synchronous.total("rl.train.tokens", **{"rl.role": role}) == pytest.approx(2 * tokens)
    flops = {
        str(point.attributes["rl.phase.name"]): point.value
        for point in synchronous.capture.latest("rl.phase.flops")
        if point.attributes.get("rl.role") != "critic"
    }
    # Forward and backward of two epochs are six times one forward pass.
    assert flops["train"] == 6 * float(flops["logprob"] or 0)
    assert flops["ref_logprob"] == flops["logprob"]


def test_forward_passes_are_told_apart(synchronous: Run) -> None:
    inside = [
        (phase(node.span), node.span.attributes.get("rl.role"))
        for node in synchronous.loops[1].children
        if phase(node.span) == "logprob"
        for node in node.children
    ]
    assert inside == [("value", "critic"), ("ref_logprob", "reference")]
    for model, name in (("critic", "value"), ("ref", "ref_logprob")):
        took = synchronous.total("rl.phase.duration", **{"rl.phase.name": name})
        assert synchronous.worked(f"forward {model}") <= took <= synchronous.worked(f"forward {model}") + BUSY


def test_evaluations_are_apart_from_training(synchronous: Run) -> None:
    evaluated = [
        data["eval/all/avg_score"] for line in synchronous.logged if "eval/all/avg_score" in (data := line["data"])
    ]
    assert len(evaluated) == 3  # before training, and after the second and the last iteration
    assert synchronous.observations("rl.phase.duration", **{"rl.phase.name": "evaluate"}) == 3
    assert synchronous.gauge("rl.evaluation.score", **{"rl.evaluation.name": "all/avg_score"})[-1] == evaluated[-1]
    assert synchronous.total("rl.sample.samples") == 8 * 3


def test_checkpoints_are_all_seen_the_last_one_too(synchronous: Run) -> None:
    saved = {"rl.checkpoint.operation": "save"}
    assert synchronous.observations("rl.checkpoint.duration", **saved) == 2
    assert synchronous.total("rl.checkpoint.duration", **saved) >= synchronous.worked("save")
    assert synchronous.gauge("rl.checkpoint.step")[-1] == 3
    logged = sum(data.get("timing/save_checkpoints", 0.0) for data in timings(synchronous))
    assert logged < synchronous.worked("save")  # SkyRL does not log the last


def test_weights_are_sent_before_and_after_each_iteration(synchronous: Run) -> None:
    assert synchronous.observations("rl.sync.duration") == 4
    sent = synchronous.worked("sync")
    assert sent <= synchronous.total("rl.sync.duration") <= sent + BUSY
    (point,) = synchronous.capture.latest("rl.sync.duration")
    assert point.attributes["rl.sync.destination"] == "vllm"


def test_asynchronous_rollouts_belong_to_the_iteration_they_began_in(asynchronous: Run) -> None:
    kinds = {"wait": 0, "generate": 0}
    late = 0
    for root in asynchronous.loops:
        for node in root.children:
            if phase(node.span) == "sample":
                kinds[str(node.span.attributes["rl.sample.kind"])] += 1
                late += node.span.end_ns > root.span.end_ns
    waits = len(trained(asynchronous))
    rollouts = asynchronous.total("rl.sample.samples") / 2
    assert kinds["wait"] == waits
    # Those that were cut short at the end are spans, but no rollouts.
    assert rollouts <= kinds["generate"] <= rollouts + 4
    assert late > 0
    assert asynchronous.gauge("rl.sample.staleness")[-1] == trained(asynchronous)[-1]["async/staleness_mean"]


def test_an_asynchronous_evaluation_that_is_never_logged_is_seen(asynchronous: Run) -> None:
    evaluations = [line for line in asynchronous.logged if "eval/all/avg_score" in line["data"]]
    assert [line["step"] for line in evaluations] == [0, 3]  # that of the second iteration; the last is lost
    assert asynchronous.observations("rl.phase.duration", **{"rl.phase.name": "evaluate"}) == 3


def test_attempts_at_one_iteration_are_one(dynamic: Run) -> None:
    attempts = [sum(phase(node.span) == "sample" for node in root.children) for root in dynamic.loops]
    assert len(attempts) == 2
    assert max(attempts) > 1
    assert dynamic.total("rl.sample.samples") == 8 * sum(attempts)
    assert dynamic.observations("rl.sample.duration") == 2
    assert [data["generate/batch_num_seq"] for data in trained(dynamic)] == [8, 8]


def test_a_run_that_is_resumed_goes_on_where_it_was(synchronous: Run, folder: Path) -> None:
    again = run("loop.py", folder, "sync", "trainer.resume_mode=latest", ITERATIONS="4")
    assert [root.span.attributes["rl.loop.iteration"] for root in again.loops] == [4]
    restored = {"rl.checkpoint.operation": "restore"}
    assert again.observations("rl.checkpoint.duration", **restored) == 1
    assert again.total("rl.checkpoint.duration", **restored) >= again.worked("load") > 0


@pytest.mark.parametrize(
    ("kind", "error", "phases"),
    [
        ("environment", "BrokenEnvironment", {"reward", "sample", "loop"}),
        ("update", "BrokenUpdate", {"train", "loop"}),
    ],
)
def test_what_fails_is_named_and_the_exception_goes_on(
    tmp_path: Path, kind: str, error: str, phases: set[str]
) -> None:
    seen = run("failing.py", tmp_path, kind)
    assert f"raised {error}: no more" in seen.output
    failed = [span for span in seen.capture.spans() if span.status_code == "error"]
    assert {phase(span) for span in failed} == phases
    assert {span.attributes["error.type"] for span in failed} == {f"made_up.{error}"}
    assert {
        str(point.attributes["rl.phase.name"]) for point in seen.capture.latest("rl.phase.failures") if point.value
    } == phases


def test_what_an_asynchronous_rollout_fails_with_arrives_though_the_process_ends_at_once(
    tmp_path: Path,
) -> None:
    seen = run("failing.py", tmp_path, "async", status=1)
    failed = [span for span in seen.capture.spans() if span.status_code == "error"]
    assert {phase(span) for span in failed} == {"reward", "sample", "loop"}
    assert {span.attributes["error.type"] for span in failed} == {"made_up.BrokenEnvironment"}
