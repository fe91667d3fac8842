"""PPO: each rollout with its update is an iteration, and its numbers are those that skrl tracks."""

from itertools import groupby
from pathlib import Path

import pytest

from tests.frameworks.running import Run, phase, seconds
from tests.frameworks.skrl.conftest import ITERATIONS, ROWS, STEPS, UPDATES, last, train

LOSSES = {"policy": "Loss / Policy loss", "value": "Loss / Value loss", "entropy": "Loss / Entropy loss"}
GAUGES = {
    "rl.learning_rate": "Learning / Learning rate",
    "rl.environment.reward.mean": "Reward / Total reward (mean)",
    "rl.environment.episode.length.mean": "Episode / Total timesteps (mean)",
}


def phases(run: Run) -> list[list[str]]:
    return [[phase(node.span) for node in root.children] for root in run.loops]


def numbers_are_those_of_the_run(run: Run) -> None:
    known = last(run)
    assert run.total("rl.sample.steps") == run.total("rl.sample.samples") == ITERATIONS * ROWS
    assert known["steps"] == ITERATIONS * STEPS
    assert run.total("rl.sample.episodes") == known["ended"] > 0
    assert run.total("rl.train.steps") == ITERATIONS * UPDATES
    losses = {str(p.attributes["rl.loss.type"]): p.value for p in run.capture.latest("rl.train.loss")}
    assert losses == {name: pytest.approx(known["latest"][key]) for name, key in LOSSES.items()}
    for metric, key in GAUGES.items():
        assert run.gauge(metric)[-1] == pytest.approx(known["latest"][key]), metric
    assert run.gauge("rl.entropy")[-1] == pytest.approx(-known["latest"]["Loss / Entropy loss"] / 0.01)


def test_each_rollout_and_its_update_are_a_trace(ppo: Run) -> None:
    assert phases(ppo) == [["sample", "train"]] * ITERATIONS
    attributes = {node.span.name: node.span.attributes for node in ppo.loops[0].children}
    assert attributes["rl.sample"]["rl.sample.batch_size"] == ROWS
    assert attributes["rl.train"]["rl.train.batch_size"] == ROWS // 2


def test_counts_and_gauges_are_what_skrl_tracks(ppo: Run) -> None:
    numbers_are_those_of_the_run(ppo)


def test_an_update_lasts_as_long_as_skrl_says(ppo: Run) -> None:
    spans = [seconds(node.span) for root in ppo.loops for node in root.children if phase(node.span) == "train"]
    over = [theirs - ours for ours, theirs in zip(spans, last(ppo)["update_seconds"], strict=True)]
    # Theirs is around ours. On a busy machine something may come in between, but not every time.
    assert -0.0001 < min(over) < 0.001
    milliseconds = last(ppo)["update_ms"]
    assert sum(spans) < milliseconds / 1000 < sum(spans) + 0.25


def test_the_time_of_a_step_is_what_skrl_calls_env_stepping_time(ppo: Run) -> None:
    (point,) = ppo.capture.latest("rl.step.duration")
    assert point.count == ITERATIONS
    theirs = last(ppo)["step_ms"] / 1000 / (ITERATIONS * STEPS)
    assert theirs - 0.001 < float(point.sum or 0) / ITERATIONS < theirs + 0.0001


def test_a_rollout_takes_the_time_from_the_first_step_to_the_update(ppo: Run) -> None:
    for root in ppo.loops:
        sample, update = (node.span for node in root.children)
        assert seconds(sample) >= STEPS * 0.005
        assert 0 <= (update.start_ns - sample.end_ns) / 1e9 < 0.05


def test_a_checkpoint_is_written_in_its_iteration_and_takes_nothing_from_the_rollout(evaluated: Run) -> None:
    written = STEPS * ITERATIONS // 40
    names = phases(evaluated)
    assert [name for iteration in names for name in iteration].count("checkpoint") == written
    for iteration in names:
        kept = [name for name in iteration if name != "checkpoint"]
        assert [name for name, _ in groupby(kept)] == ["sample", "train"]
    assert evaluated.total("rl.checkpoint.operations", **{"rl.checkpoint.operation": "save"}) == written
    assert evaluated.gauge("rl.checkpoint.step")[-1] == -(-written * 40 // STEPS)
    numbers_are_those_of_the_run(evaluated)


def test_an_evaluation_is_a_phase_of_its_own_and_its_scores_stay_apart(evaluated: Run) -> None:
    assert evaluated.observations("rl.phase.duration", **{"rl.phase.name": "evaluate"}) == 1
    scores = {
        str(p.attributes["rl.evaluation.name"]): p.value for p in evaluated.capture.latest("rl.evaluation.score")
    }
    keys = ("Reward / Total reward (mean)", "Episode / Total timesteps (mean)")
    assert scores == {key: pytest.approx(last(evaluated)["scores"][key]) for key in keys}


def test_an_agent_of_the_users_own_is_followed_once(tmp_path: Path) -> None:
    run = train(tmp_path, "own")
    assert phases(run) == [["sample", "train"]] * ITERATIONS
    numbers_are_those_of_the_run(run)


def test_a_loop_of_the_users_own_is_followed_step_by_step(tmp_path: Path) -> None:
    run = train(tmp_path, "step")
    assert phases(run) == [["sample", "train"]] * ITERATIONS
    numbers_are_those_of_the_run(run)


def test_training_that_goes_on_from_a_checkpoint_has_restored_it(tmp_path: Path) -> None:
    train(tmp_path / "first", SAVE="64")
    saved = tmp_path / "first" / "experiment" / "checkpoints" / "agent_128.pt"
    run = train(tmp_path / "second", LOAD=str(saved))
    assert run.total("rl.checkpoint.operations", **{"rl.checkpoint.operation": "restore"}) == 1
    assert [root.span.attributes["rl.loop.iteration"] for root in run.loops] == [1, 2, 3, 4]  # as skrl counts
    numbers_are_those_of_the_run(run)


def test_training_is_the_same_without_us(evaluated: Run, tmp_path: Path) -> None:
    without = train(tmp_path, RLOTEL_ENABLED="0")
    assert without.capture.points() == []
    weights = [line for line in evaluated.output.splitlines() if line.startswith("weights=")]
    assert weights == [line for line in without.output.splitlines() if line.startswith("weights=")] != []
