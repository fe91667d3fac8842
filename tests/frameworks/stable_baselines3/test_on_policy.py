"""PPO: each rollout with its update is an iteration, and its numbers are those of the run."""

import re
from itertools import groupby
from pathlib import Path

import pytest

from tests.frameworks.running import Run, lines_of, phase, seconds
from tests.frameworks.stable_baselines3.conftest import (
    ITERATIONS,
    ROWS,
    STEPS,
    UPDATES,
    calls,
    ended,
    last,
    mean,
    train,
)


def test_each_rollout_and_its_update_are_a_trace(ppo: Run) -> None:
    assert [[phase(node.span) for node in root.children] for root in ppo.loops] == [
        ["sample", "train"]
    ] * ITERATIONS
    attributes = {node.span.name: node.span.attributes for node in ppo.loops[0].children}
    assert attributes["rl.sample"]["rl.sample.batch_size"] == ROWS
    assert attributes["rl.train"]["rl.train.batch_size"] == 16


def test_durations_are_those_of_its_methods(ppo: Run) -> None:
    for name, method in (("sample", "collect_rollouts"), ("train", "train")):
        spans = [seconds(node.span) for root in ppo.loops for node in root.children if phase(node.span) == name]
        over = [theirs - ours for ours, theirs in zip(spans, calls(ppo, method), strict=True)]
        # Theirs is around ours. On a busy machine something may come in between, but not every time.
        assert -0.0001 < min(over) < 0.001
        assert max(over) < 0.25


def test_counts_are_exact(ppo: Run) -> None:
    assert (
        ppo.total("rl.sample.steps") == ppo.total("rl.sample.samples") == ITERATIONS * ROWS == last(ppo)["steps"]
    )
    assert ppo.total("rl.sample.episodes") == ended(ppo) > 0
    assert ppo.total("rl.train.steps") == ITERATIONS * UPDATES


def test_the_time_of_a_step_is_that_of_the_vector_environment(ppo: Run) -> None:
    (point,) = ppo.capture.latest("rl.step.duration")
    assert point.count == ITERATIONS
    mean = ppo.worked("step") / (ITERATIONS * STEPS)  # one after the other, in one process
    assert mean <= float(point.sum or 0) / ITERATIONS < mean + 0.005


def test_gauges_are_of_the_last_update_though_it_is_never_dumped(ppo: Run) -> None:
    recorded = last(ppo)["recorded"]
    assert recorded["train/value_loss"] != ppo.logged[-1]["train/value_loss"]
    losses = {str(p.attributes["rl.loss.type"]): p.value for p in ppo.capture.latest("rl.train.loss")}
    assert losses == {
        "policy": pytest.approx(recorded["train/policy_gradient_loss"]),
        "value": pytest.approx(recorded["train/value_loss"]),
        "total": pytest.approx(recorded["train/loss"]),
        "entropy": pytest.approx(recorded["train/entropy_loss"]),
    }
    for metric, key, sign in (
        ("rl.entropy", "train/entropy_loss", -1),
        ("rl.kl.divergence", "train/approx_kl", 1),
        ("rl.train.clip.ratio", "train/clip_fraction", 1),
        ("rl.learning_rate", "train/learning_rate", 1),
    ):
        assert ppo.gauge(metric)[-1] == pytest.approx(sign * recorded[key])
    assert ppo.gauge("rl.entropy")[-1] > 0


def test_returns_and_lengths_are_the_mean_of_what_sb3_keeps(ppo: Run) -> None:
    known = last(ppo)
    assert ppo.gauge("rl.environment.reward.mean")[-1] == pytest.approx(mean(known["returns"]))
    assert ppo.gauge("rl.environment.episode.length.mean")[-1] == pytest.approx(mean(known["lengths"]))
    assert ppo.logged[-1]["rollout/ep_rew_mean"] == pytest.approx(
        ppo.gauge("rl.environment.reward.mean")[-1]  # updates change nothing of it
    )


def test_an_evaluation_is_a_phase_and_takes_nothing_from_the_rollout(evaluated: Run) -> None:
    for root in evaluated.loops[1:]:
        names = [phase(node.span) for node in root.children if phase(node.span) != "checkpoint"]
        assert [name for name, _ in groupby(names)] == ["sample", "evaluate", "sample", "train"]
    spans = [node.span for root in evaluated.loops for node in root.children]
    evaluating = sum(seconds(span) for span in spans if phase(span) == "evaluate")
    # The last evaluation was after training, in no iteration.
    assert evaluated.total("rl.phase.duration", **{"rl.phase.name": "evaluate"}) >= evaluated.worked("evaluation")
    saving = sum(seconds(span) for span in spans if phase(span) == "checkpoint")
    collecting = sum(calls(evaluated, "collect_rollouts"))
    assert evaluated.total("rl.sample.duration") == pytest.approx(collecting - evaluating - saving, abs=0.1)
    assert evaluated.observations("rl.sample.duration") == ITERATIONS
    assert evaluated.total("rl.sample.steps") == ITERATIONS * ROWS
    assert evaluated.total("rl.sample.episodes") == ended(evaluated)


def test_scores_of_an_evaluation_stay_apart(evaluated: Run) -> None:
    ((reward, deviation),) = [line["scores"] for line in lines_of(evaluated.folder / "scores.jsonl")]
    scores = {
        str(p.attributes["rl.evaluation.name"]): p.value for p in evaluated.capture.latest("rl.evaluation.score")
    }
    lengths = [line["eval/mean_ep_length"] for line in evaluated.logged if "eval/mean_ep_length" in line]
    assert scores == {
        "mean_reward": pytest.approx(reward),
        "std_reward": pytest.approx(deviation),
        "mean_ep_length": pytest.approx(lengths[-1]),
    }
    known = last(evaluated)
    assert evaluated.gauge("rl.environment.reward.mean")[-1] == pytest.approx(mean(known["returns"]))


def test_what_evaluates_best_is_saved_in_its_iteration(evaluated: Run) -> None:
    saves = [node.span for root in evaluated.loops for node in root.children if phase(node.span) == "checkpoint"]
    assert len(saves) == evaluated.total("rl.checkpoint.operations", **{"rl.checkpoint.operation": "save"}) >= 1
    assert evaluated.gauge("rl.checkpoint.step")[-1] == saves[-1].attributes["rl.loop.iteration"]


def test_environments_in_other_processes_have_a_name_and_count_alike(tmp_path: Path) -> None:
    run = train(tmp_path, PROCESSES="1")
    assert {p.attributes["rl.environment.name"] for p in run.capture.points("rl.loop.duration")} == {"Point-v0"}
    assert run.total("rl.sample.steps") == ITERATIONS * ROWS
    assert run.total("rl.sample.episodes") == ended(run)
    (point,) = run.capture.latest("rl.step.duration")
    assert float(point.sum or 0) / ITERATIONS >= run.worked("step") / (ITERATIONS * ROWS)
    assert len({span.resource["service.instance.id"] for span in run.capture.spans()}) == 1


def test_a_run_that_goes_on_restores_and_counts_from_there(tmp_path: Path) -> None:
    first = train(tmp_path, iterations=2, SAVE=str(tmp_path / "saved"))
    assert first.observations("rl.checkpoint.duration", **{"rl.checkpoint.operation": "save"}) == 1
    assert first.gauge("rl.checkpoint.step")[-1] == 2
    run = train(tmp_path / "again", iterations=2, LOAD=str(tmp_path / "saved"))
    assert run.observations("rl.checkpoint.duration", **{"rl.checkpoint.operation": "restore"}) == 1
    assert run.total("rl.sample.steps") == 2 * ROWS
    assert run.total("rl.restarts") == 0


def test_what_is_learnt_is_the_same_to_the_bit_without_rlotel(tmp_path: Path, ppo: Run) -> None:
    run = train(tmp_path, RLOTEL_ENABLED="0")
    assert run.lines == []
    (without,) = re.findall("weights=(.*)", run.output)
    assert re.findall("weights=(.*)", ppo.output) == [without]


def test_a_second_training_in_the_same_process_is_no_restart(tmp_path: Path) -> None:
    run = train(tmp_path, "twice", iterations=2)
    assert [root.span.attributes["rl.loop.iteration"] for root in run.loops] == [1, 2, 3, 4]
    assert run.total("rl.restarts") == 0


def test_an_algorithm_of_the_users_own_is_followed(tmp_path: Path) -> None:
    run = train(tmp_path, "own")
    assert {p.attributes["rl.algorithm"] for p in run.capture.points("rl.loop.duration")} == {"OwnPPO"}
    assert run.observations("rl.loop.duration") == ITERATIONS
    trained = [seconds(node.span) for root in run.loops for node in root.children if phase(node.span) == "train"]
    assert min(trained) > 0.02  # what it does beside its base is a part of it
    assert run.total("rl.train.steps") == ITERATIONS * UPDATES
