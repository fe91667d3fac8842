"""Rounds that take a moment are gathered: the sums are those of all of them, and a second is an iteration."""

import pytest

from tests.frameworks.running import Run, phase, seconds
from tests.frameworks.stable_baselines3.conftest import ENVS, ROUNDS, calls, ended, last

Kind = tuple[str, Run]
STEPS = {"a2c": 5, "dqn": 4, "sac": 4}
LOSSES = {
    "a2c": {"policy": "train/policy_loss", "value": "train/value_loss", "entropy": "train/entropy_loss"},
    "dqn": {"total": "train/loss"},
    "sac": {"policy": "train/actor_loss", "value": "train/critic_loss"},
}


def test_an_iteration_is_what_was_done_in_a_second(tiny: Kind) -> None:
    kind, run = tiny
    lengths = [seconds(root.span) for root in run.loops]
    assert 1 < len(lengths) < ROUNDS[kind] / 10
    # A2C's first rounds are not known to be tiny, and what else this machine does may make a later one long.
    assert sum(length < 1.0 - 0.001 for length in lengths[:-1]) <= 3
    for root in run.loops:
        names = [phase(node.span) for node in root.children]
        assert set(names) == {"sample", "train"}
        assert len(names) <= 4


def test_an_iteration_has_the_number_of_its_first_round(tiny: Kind) -> None:
    kind, run = tiny
    numbers = [int(str(root.span.attributes["rl.loop.iteration"])) for root in run.loops]
    assert numbers[0] == 1
    assert numbers == sorted(set(numbers))
    assert numbers[-1] <= ROUNDS[kind]


def test_phases_last_as_long_as_all_calls_together(tiny: Kind) -> None:
    _, run = tiny
    for name, method in (("sample", "collect_rollouts"), ("train", "train")):
        theirs = sum(calls(run, method))
        assert 0.8 * theirs < run.total(f"rl.{name}.duration") < theirs
        assert run.observations(f"rl.{name}.duration") == len(run.loops)


def test_counts_are_exact(tiny: Kind) -> None:
    kind, run = tiny
    steps = ROUNDS[kind] * STEPS[kind] * ENVS
    assert run.total("rl.sample.steps") == run.total("rl.sample.samples") == steps == last(run)["steps"]
    assert run.total("rl.sample.episodes") == ended(run)
    assert run.total("rl.train.steps") == last(run)["updates"]


def test_gauges_are_of_the_last_update(tiny: Kind) -> None:
    kind, run = tiny
    known = last(run)
    losses = {str(p.attributes["rl.loss.type"]): p.value for p in run.capture.latest("rl.train.loss")}
    assert losses == {name: pytest.approx(known["recorded"][key]) for name, key in LOSSES[kind].items()}
    assert run.gauge("rl.learning_rate")[-1] == pytest.approx(known["recorded"]["train/learning_rate"])
    assert run.gauge("rl.environment.reward.mean")[-1] == pytest.approx(
        sum(known["returns"]) / len(known["returns"])
    )


def test_the_time_of_a_step_is_recorded_once_an_iteration(tiny: Kind) -> None:
    _, run = tiny
    assert run.observations("rl.step.duration") == len(run.loops)
