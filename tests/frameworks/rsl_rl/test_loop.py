"""The loop in each release: traces, durations, counts and values are those of the run."""

from pathlib import Path

import pytest

from tests.frameworks.rsl_rl.conftest import ENVS, INSTALLED, ITERATIONS, STEPS, UPDATES, ended, logged, train
from tests.frameworks.running import Run, phase, seconds

ROWS = ENVS * STEPS

TAGS = {
    "rl.environment.reward.mean": ["Train/mean_reward"],
    "rl.environment.episode.length.mean": ["Train/mean_episode_length"],
    "rl.learning_rate": ["Loss/learning_rate"],
    "rl.entropy": ["Loss/entropy"],
    "rl.train.loss policy": ["Loss/surrogate"],
    "rl.train.loss value": ["Loss/value", "Loss/value_function"],
}
"""By gauge, and type of loss, what rsl_rl logs it as, in some release."""


def test_each_iteration_is_a_trace_with_its_phases_and_saves(trained: Run) -> None:
    assert [root.span.attributes["rl.loop.iteration"] for root in trained.loops] == list(range(ITERATIONS))
    assert len(trained.capture.traces()) == ITERATIONS
    # Every second iteration is saved, and at the end the last one.
    for root, saves in zip(trained.loops, (1, 0, 1, 1), strict=True):
        assert [phase(node.span) for node in root.children] == ["sample", "advantage", "train"] + [
            "checkpoint"
        ] * saves


def test_durations_are_those_that_rsl_rl_logs(trained: Run) -> None:
    over: dict[str, list[float]] = {"collection": [], "learning": []}
    for root, values in zip(trained.loops, logged(trained), strict=True):
        spans = {phase(node.span): seconds(node.span) for node in root.children}
        collection = values.get("Perf/collection_time", values.get("Perf/collection time"))
        assert collection is not None
        over["collection"].append(spans["sample"] - collection)
        over["learning"].append(spans["advantage"] + spans["train"] - values["Perf/learning_time"])
    for differences in over.values():
        # On a busy machine something may come in between, but not every time.
        assert min(map(abs, differences)) < 0.001
        assert max(map(abs, differences)) < 0.25


def test_counts_are_exact(trained: Run) -> None:
    assert trained.total("rl.sample.steps") == ITERATIONS * ROWS
    assert trained.total("rl.sample.samples") == ITERATIONS * ROWS
    assert trained.total("rl.train.steps") == ITERATIONS * UPDATES
    assert trained.total("rl.sample.episodes") == ended(trained) > 0


def test_the_time_of_an_environment_step_is_what_the_environment_took(trained: Run) -> None:
    (point,) = trained.capture.latest("rl.step.duration")
    assert point.count == ITERATIONS
    mean = trained.worked("step") / (ITERATIONS * STEPS)
    assert mean <= float(point.sum or 0) / ITERATIONS < mean + 0.002


def test_gauges_are_what_rsl_rl_logs(trained: Run) -> None:
    last = logged(trained)[-1]
    for name, tags in TAGS.items():
        metric, _, loss = name.partition(" ")
        points = trained.capture.latest(metric, **({"rl.loss.type": loss} if loss else {}))
        assert [p.value for p in points] == [pytest.approx(last[tag], rel=1e-6) for tag in tags if tag in last]


def test_batch_sizes_are_rows(trained: Run) -> None:
    spans = {node.span.name: node.span.attributes for node in trained.loops[0].children}
    assert spans["rl.sample"]["rl.sample.batch_size"] == ROWS
    assert spans["rl.train"]["rl.train.batch_size"] == ROWS // 4
    assert spans["rl.train"]["rl.train.steps"] == UPDATES


def test_a_model_that_is_saved_twice_is_two_operations_of_one_step(tmp_path: Path) -> None:
    """At the end rsl_rl saves the last model, also where it just has: both took their time."""
    run = train(tmp_path, iterations=3)
    saves = [[phase(node.span) for node in root.children].count("checkpoint") for root in run.loops]
    assert saves == [1, 0, 2]
    assert run.total("rl.checkpoint.operations", **{"rl.checkpoint.operation": "save"}) == 3
    assert run.observations("rl.checkpoint.duration") == 2
    assert run.gauge("rl.checkpoint.step")[-1] == 2


@pytest.mark.parametrize("version", [INSTALLED, "5.0.1"])
def test_without_a_log_directory_all_but_the_episodes_values_is_known(tmp_path: Path, version: str) -> None:
    run = train(tmp_path, version, LOG="")
    assert run.total("rl.sample.steps") == ITERATIONS * ROWS
    assert run.total("rl.sample.episodes") == ended(run)
    assert [len(root.children) for root in run.loops] == [3] * ITERATIONS
    assert run.gauge("rl.entropy")
    assert run.gauge("rl.environment.reward.mean") == []
    assert run.capture.latest("rl.checkpoint.age") == []
