"""Rounds of a step are gathered: the sums are those of all of them, and a second is an iteration."""

import pytest

from tests.frameworks.running import Run, phase, seconds
from tests.frameworks.skrl.conftest import ENVS, ROUNDS, last

Kind = tuple[str, Run]
LOSSES = {
    "dqn": {"value": "Loss / Q-network loss"},
    "sac": {"policy": "Loss / Policy loss", "value": "Loss / Critic loss"},
}


def test_an_iteration_is_what_was_done_in_a_second(tiny: Kind) -> None:
    kind, run = tiny
    lengths = [seconds(root.span) for root in run.loops]
    assert 1 < len(lengths) < ROUNDS[kind] / 10
    # What else this machine does may make a round long, and so one by itself.
    assert sum(length < 1.0 - 0.001 for length in lengths[:-1]) <= 3
    for root in run.loops:
        names = [phase(node.span) for node in root.children]
        assert set(names) == {"sample", "train"}
        assert len(names) <= 4


def test_an_iteration_has_the_number_of_its_first_step(tiny: Kind) -> None:
    kind, run = tiny
    numbers = [int(str(root.span.attributes["rl.loop.iteration"])) for root in run.loops]
    assert numbers[0] == 1
    assert numbers == sorted(set(numbers))
    assert numbers[-1] <= ROUNDS[kind]


def test_updates_last_as_long_as_all_calls_together(tiny: Kind) -> None:
    _, run = tiny
    theirs = sum(last(run)["update_seconds"])
    assert 0.8 * theirs < run.total("rl.train.duration") < theirs
    assert run.observations("rl.train.duration") == len(run.loops)


def test_counts_and_gauges_are_what_skrl_tracks(tiny: Kind) -> None:
    kind, run = tiny
    known = last(run)
    assert run.total("rl.sample.steps") == run.total("rl.sample.samples") == ROUNDS[kind] * ENVS
    assert run.total("rl.sample.episodes") == known["ended"] > 0
    assert run.total("rl.train.steps") == 2 * known["updates"]
    losses = {str(p.attributes["rl.loss.type"]): p.value for p in run.capture.latest("rl.train.loss")}
    assert losses == {name: pytest.approx(known["latest"][key]) for name, key in LOSSES[kind].items()}


def test_the_time_of_a_step_is_recorded_once_an_iteration(tiny: Kind) -> None:
    _, run = tiny
    assert run.observations("rl.step.duration") == len(run.loops)
