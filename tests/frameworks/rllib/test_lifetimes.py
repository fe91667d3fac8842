"""What is watched comes and goes: algorithms, sessions, and programs that are none of RLlib's."""

import gc
from typing import Any

import pytest
import torch
from opentelemetry import trace

import rlotel
from rlotel import context
from rlotel.testing import Telemetry, captured
from tests.conftest import Program
from tests.frameworks.rllib.environments import configuration

pytestmark = pytest.mark.filterwarnings("ignore")


def test_an_algorithm_that_was_made_before_it_was_watched_is_known(ray: None) -> None:
    algorithm = configuration("PPO").build_algo()
    algorithm.train()
    with captured(frameworks=("rllib",)) as telemetry:
        algorithm.train()
        (loop,) = telemetry.spans("rl.loop")
        identity = telemetry.session.identity.freeze()
        (train,) = telemetry.spans("rl.train")
    assert loop.attributes["rl.loop.iteration"] == 2
    assert (identity["rl.system"], identity["rl.algorithm"], identity["rl.environment.name"]) == (
        "ray-rllib",
        "PPO",
        "Steps",
    )
    assert train.attributes["rl.train.batch_size"] == 40


def test_algorithms_that_take_turns_have_their_own_settings(telemetry: Telemetry) -> None:
    other = configuration("PPO")
    other.training(train_batch_size_per_learner=60)
    one, two = configuration("PPO").build_algo(), other.build_algo()
    for algorithm in (one, two, one):
        algorithm.train()
    sizes = [span.attributes["rl.train.batch_size"] for span in telemetry.spans("rl.train")]
    assert sizes == [40, 60, 40]


def test_algorithms_that_take_turns_are_no_restarts(telemetry: Telemetry) -> None:
    one, two = configuration("PPO").build_algo(), configuration("PPO").build_algo()
    for algorithm in (one, one, one, two, one, two):
        algorithm.train()
    loops = telemetry.spans("rl.loop")
    assert [loop.attributes["rl.loop.iteration"] for loop in loops] == [1, 2, 3, 1, 4, 2]
    assert len({loop.trace_id for loop in loops}) == 6
    restarts = telemetry.points("rl.restarts") + telemetry.points("rl.checkpoint.lost_steps")
    assert {point.value for point in restarts} == {0}


def test_nothing_is_current_once_it_is_let_go_of(telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    algorithm = configuration("PPO").build_algo()
    step = torch.optim.Adam.step

    def once(self: Any, *args: Any, **kwargs: Any) -> Any:
        rlotel.uninstrument()
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", once)
    algorithm.train()
    assert context.current() is None
    assert not trace.get_current_span().get_span_context().is_valid
    algorithm.train()


def test_ctrl_c_ends_an_iteration_and_the_next_one_is_whole(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithm = configuration("PPO").build_algo()
    step = torch.optim.Adam.step

    def interrupted(*_args: Any, **_kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.optim.Adam, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        algorithm.train()
    assert context.current() is None
    assert telemetry.points("rl.loop.age") == telemetry.points("rl.phase.age") == []
    monkeypatch.setattr(torch.optim.Adam, "step", step)
    algorithm.train()
    loops = telemetry.spans("rl.loop")
    assert [loop.status_code == "error" for loop in loops] == [False, False]
    parents = {span.parent_id for span in telemetry.spans("rl.train")}
    assert parents == {loop.span_id for loop in loops}


def test_a_program_that_uses_ray_for_something_else_does_not_wait_for_an_algorithm(program: Program) -> None:
    done = program(
        """
        import rlotel
        session = rlotel.instrument(capture="capture.jsonl", gpu=False)
        import ray
        print(session.identity.waits())
        from ray.rllib.algorithms.ppo import PPOConfig
        print(session.identity.waits())
        PPOConfig()
        print(session.identity.waits())
        """
    )
    assert done.stdout.split() == ["False", "True", "False"]


def test_a_loop_on_any_node_of_a_cluster_is_the_one_that_reports(ray: None) -> None:
    """Kubeflow and others give each node a rank, which its Ray hands down."""
    with captured({"RANK": "1", "WORLD_SIZE": "2"}, frameworks=("rllib",)) as telemetry:
        configuration("PPO").build_algo().train()
        assert len(telemetry.spans("rl.loop")) == 1
        assert telemetry.value("rl.sample.steps") == 40


def ours() -> int:
    """How many objects of our classes there are."""
    gc.collect()
    return sum(str(type(one).__module__).startswith("rlotel.") for one in gc.get_objects())


def test_iterations_leave_nothing_behind(telemetry: Telemetry) -> None:
    algorithm = configuration("DQN").build_algo()
    sizes = []
    for _ in range(3):
        for _ in range(3):
            algorithm.train()
        sizes.append(ours())
    assert sizes[1] == sizes[2]
