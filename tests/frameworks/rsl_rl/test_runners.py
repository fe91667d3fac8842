"""Other runners and algorithms, several ranks, and runs that go on from a checkpoint."""

import json
from pathlib import Path

import pytest

from tests.frameworks.rsl_rl.conftest import ENVS, INSTALLED, ITERATIONS, STEPS, UPDATES, logged, train
from tests.frameworks.running import Run, phase, seconds


def test_what_all_ranks_know_is_told_by_the_first_for_all(ranks: Run) -> None:
    assert [root.span.attributes["rl.loop.iteration"] for root in ranks.loops] == list(range(ITERATIONS))
    assert ranks.total("rl.sample.steps") == 2 * ENVS * STEPS * ITERATIONS
    assert ranks.total("rl.train.steps") == UPDATES * ITERATIONS
    assert ranks.observations("rl.loop.duration") == ITERATIONS
    assert ranks.total("rl.sample.episodes") == 0  # those of the other rank are not known
    assert ranks.total("rlotel.errors") == 0


def test_another_rank_is_a_part_of_the_same_traces(ranks: Run) -> None:
    (worker,) = {str(p.resource["service.instance.id"]) for p in ranks.capture.points("rl.worker.duration")}
    assert len(ranks.capture.traces()) == ITERATIONS
    for root in ranks.loops:
        theirs = [
            phase(node.span)
            for node in root.children
            if node.span.resource["service.instance.id"] == worker != root.span.resource["service.instance.id"]
        ]
        assert theirs == ["sample", "advantage", "train"]
    assert ranks.observations("rl.worker.duration", **{"rl.phase.name": "train"}) == ITERATIONS


@pytest.mark.parametrize("version", [INSTALLED, "3.0.1"])
def test_a_run_goes_on_with_the_iteration_that_was_saved_last(tmp_path: Path, version: str) -> None:
    train(tmp_path, version, iterations=3)
    run = train(tmp_path / "again", version, iterations=2, LOAD=str(tmp_path / "log" / "model_2.pt"))
    assert [root.span.attributes["rl.loop.iteration"] for root in run.loops] == [2, 3]
    assert run.observations("rl.checkpoint.duration", **{"rl.checkpoint.operation": "restore"}) == 1
    assert run.total("rl.restarts") == 0
    assert run.gauge("rl.checkpoint.step")[-1] == 3


def test_a_second_call_of_learn_does_the_last_iteration_again(tmp_path: Path) -> None:
    run = train(tmp_path, iterations=2, AGAIN="2")
    assert [root.span.attributes["rl.loop.iteration"] for root in run.loops] == [0, 1, 1, 2]
    assert len({root.span.trace_id for root in run.loops}) == 4
    assert run.total("rl.restarts") == 0


def test_another_training_in_the_same_process_is_counted_on(tmp_path: Path) -> None:
    run = train(tmp_path, iterations=2, ANOTHER="2")
    assert [root.span.attributes["rl.loop.iteration"] for root in run.loops] == [0, 1, 2, 3]
    assert run.total("rl.restarts") == 0


def test_what_is_known_has_arrived_before_a_simulator_ends_the_process(tmp_path: Path) -> None:
    run = train(tmp_path, HARD_EXIT="1")
    assert len(run.loops) == ITERATIONS
    assert run.total("rl.sample.steps") == ENVS * STEPS * ITERATIONS


@pytest.mark.parametrize("version", [INSTALLED, "3.0.1"])
def test_a_distillation_tells_its_loss_and_its_own_number_of_steps(tmp_path: Path, version: str) -> None:
    run = train(tmp_path, version, KIND="distillation")
    losses = {str(p.attributes["rl.loss.type"]): p.value for p in run.capture.latest("rl.train.loss")}
    assert losses == {"total": pytest.approx(logged(run)[-1]["Loss/behavior"])}
    assert run.total("rl.train.steps") == 3 * ITERATIONS
    assert run.total("rl.sample.steps") == ENVS * STEPS * ITERATIONS
    (point,) = run.capture.latest("rl.loop.duration")
    assert point.attributes["rl.algorithm"] == "Distillation"


@pytest.mark.parametrize("version", [INSTALLED, "3.0.1"])
def test_the_reward_of_curiosity_is_not_the_environments(tmp_path: Path, version: str) -> None:
    run = train(tmp_path, version, KIND="curious")
    last = logged(run)[-1]
    assert last["Rnd/mean_extrinsic_reward"] != pytest.approx(last["Train/mean_reward"])
    assert run.gauge("rl.environment.reward.mean")[-1] == pytest.approx(last["Rnd/mean_extrinsic_reward"])
    assert run.total("rl.train.steps") == UPDATES * ITERATIONS


def test_a_runner_and_an_algorithm_of_the_users_own_are_followed(tmp_path: Path) -> None:
    run = train(tmp_path, KIND="learner")
    assert [len(root.children) for root in run.loops] == [4, 3, 4, 4]
    assert {str(p.attributes["rl.algorithm"]) for p in run.capture.points("rl.loop.duration")} == {"OwnPPO"}
    saves = [node.span for root in run.loops for node in root.children if phase(node.span) == "checkpoint"]
    assert min(map(seconds, saves)) > 0.05  # what it does beside its base is a part of it


def test_what_is_on_a_device_is_never_read_while_environments_step(tmp_path: Path) -> None:
    """Reading waits for a GPU. Ours add what can be queued, two sums a step; one number is read an iteration."""
    found, weights = [], set()
    for enabled in ("1", "0"):
        folder = tmp_path / enabled
        run = train(folder, RLOTEL_ENABLED=enabled, OPERATIONS="1", LOG="")
        found.append(json.loads((folder / "operations.json").read_text()))
        weights.add(run.output.partition("weights=")[2].split()[0])
    assert len(weights) == 1  # what is learnt is the same to the bit
    ours, plain = found
    more = {name: count - plain.get(name, 0) for name, count in ours.items() if count != plain.get(name, 0)}
    assert more == {
        "aten.count_nonzero.default": ITERATIONS * STEPS,
        "aten.add.Tensor": ITERATIONS * (STEPS - 1),
        "aten.item.default": ITERATIONS,
    }
