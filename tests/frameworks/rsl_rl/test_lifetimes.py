"""Runners that are let go of, sessions that end or begin while one learns, and what is odd about runners."""

import contextvars
import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import torch
from rsl_rl import runners
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from rlotel import context
from rlotel.testing import Telemetry, captured

ENVS, STEPS, LENGTH = 4, 8, 6
ROWS = ENVS * STEPS


class Line(VecEnv):  # type: ignore[misc]  # rsl_rl is not installed where this is checked
    """Episodes of six steps. Does something in the fourth step of the second iteration."""

    num_envs, num_actions, max_episode_length, device = ENVS, 1, LENGTH, "cpu"

    def __init__(self, do: Callable[[], object] = lambda: None) -> None:
        self.cfg: dict[str, Any] = {}
        self.episode_length_buf = torch.zeros(ENVS, dtype=torch.long)
        self.do = do
        self.steps = 0

    def get_observations(self) -> Any:
        return TensorDict({"policy": torch.ones(ENVS, 2)}, batch_size=[ENVS])

    def reset(self) -> Any:
        return self.get_observations()

    def step(self, actions: torch.Tensor) -> Any:
        self.steps += 1
        if self.steps == STEPS + 4:
            self.do()
        done = torch.full((ENVS,), self.steps % LENGTH == 0)
        return self.get_observations(), torch.ones(ENVS), done.long(), {"time_outs": done}


class Copied(runners.OnPolicyRunner):  # type: ignore[misc]
    """Learns by itself, as runners do that were copied from a release and changed."""

    def learn(self, num_learning_iterations: int) -> None:
        observations = self.env.get_observations()
        for self.current_learning_iteration in range(num_learning_iterations):
            with torch.inference_mode():
                for _ in range(STEPS):
                    actions = self.alg.act(observations)
                    observations, *outcome = self.env.step(actions)
                    self.alg.process_env_step(observations, *outcome)
                self.alg.compute_returns(observations)
            self.alg.update()


def runner(env: Any = None, kind: Any = runners.OnPolicyRunner) -> Any:
    model = {"class_name": "MLPModel", "hidden_dims": [4], "activation": "elu"}
    algorithm = {"class_name": "PPO", "num_learning_epochs": 1, "num_mini_batches": 2, "rnd_cfg": None}
    acting = {**model, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0}}
    settings = {
        "num_steps_per_env": STEPS,
        "save_interval": 100,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "algorithm": algorithm,
        "actor": acting,
        "critic": model,
    }
    return kind(Line() if env is None else env, settings, log_dir=None, device="cpu")


def numbers(telemetry: Telemetry) -> list[object]:
    return [span.attributes["rl.loop.iteration"] for span in telemetry.spans("rl.loop")]


def restarts(telemetry: Telemetry) -> float:
    return sum(point.value or 0 for point in telemetry.points("rl.restarts"))


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    with captured(frameworks=["rsl_rl"]) as seen:
        yield seen


def alone(test: Callable[[], None]) -> None:
    """Run in a context of its own: what is left current there is of no other test."""
    contextvars.copy_context().run(test)


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_runner_that_has_learnt_is_not_kept(telemetry: Telemetry) -> None:
    for env in (Line(), Line(interrupt)):
        learning = runner(env)
        parts = [weakref.ref(part) for part in (learning, learning.alg, learning.alg.optimizer)]
        try:
            learning.learn(2)
        except KeyboardInterrupt:
            assert env.do is interrupt
        del learning
        gc.collect()
        assert [part() for part in parts] == [None] * 3
    assert numbers(telemetry) == [0, 1, 2, 3]


def test_two_runners_that_take_turns_are_counted_on_and_no_restarts(telemetry: Telemetry) -> None:
    one, other = runner(), runner()
    for learning in (one, other, one, other):
        learning.learn(2)
    assert numbers(telemetry) == list(range(8))
    assert restarts(telemetry) == 0


def test_a_runner_that_goes_back_to_a_checkpoint_is_a_restart(telemetry: Telemetry) -> None:
    learning = runner()
    learning.learn(4)
    learning.current_learning_iteration = 1  # as `load` does
    learning.learn(2)
    assert numbers(telemetry) == [0, 1, 2, 3, 1, 2]
    assert restarts(telemetry) == 1


@pytest.mark.parametrize("kind", [runners.OnPolicyRunner, Copied])
def test_a_runner_may_learn_in_its_own_way(telemetry: Telemetry, kind: Any) -> None:
    runner(kind=kind).learn(2)
    assert numbers(telemetry) == [0, 1]
    assert telemetry.value("rl.sample.steps") == 2 * ROWS
    assert telemetry.value("rl.train.steps") == 2 * 2


def test_a_session_that_ends_in_a_rollout_leaves_nothing_current() -> None:
    def test() -> None:
        current: list[object] = []

        def end() -> None:
            seen.session.close()
            current.append(context.current())

        with captured(frameworks=["rsl_rl"]) as seen:
            runner(Line(end)).learn(3)
        assert [*current, context.current()] == [None, None]
        with captured(frameworks=["rsl_rl"]) as seen:
            runner().learn(1)
            assert [span.parent_id for span in seen.spans("rl.loop")] == [None]
            assert seen.value("rl.sample.steps") == ROWS

    alone(test)


def test_a_session_that_begins_in_a_rollout_follows_the_next_learning() -> None:
    def test() -> None:
        with ExitStack() as stack:
            opened: list[Telemetry] = []
            env = Line(lambda: opened.append(stack.enter_context(captured(frameworks=["rsl_rl"]))))
            learning = runner(env)
            learning.learn(3)
            learning.learn(2)
            (seen,) = opened
            assert numbers(seen) == [2, 3]
            assert seen.value("rl.sample.steps") == 2 * ROWS

    alone(test)


def test_environments_that_raise_when_asked_who_they_are_are_followed(telemetry: Telemetry) -> None:
    class Silent(Line):
        unwrapped = property(lambda _self: 1 / 0)

    runner(Silent()).learn(1)
    runner().learn(1)
    assert telemetry.value("rl.sample.steps") == 2 * ROWS
    assert {span.attributes["rl.sample.batch_size"] for span in telemetry.spans("rl.sample")} == {ROWS}
    assert [type(error) for _, error in telemetry.errors] == [ZeroDivisionError]
    telemetry.errors.clear()


def test_environments_that_forget_how_many_they_are_end_with_their_runner(telemetry: Telemetry) -> None:
    env = Line()
    env.do = lambda: setattr(env, "num_envs", None)
    runner(env).learn(2)
    assert context.current() is None
    assert [type(error) for _, error in telemetry.errors] == [TypeError]
    telemetry.errors.clear()
    runner().learn(1)
    assert numbers(telemetry) == [0, 1, 2]
    assert telemetry.value("rl.sample.steps") == 2 * ROWS
