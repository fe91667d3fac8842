"""Models that are let go of, sessions that end or begin while one learns, and what is odd about models."""

import contextvars
import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import gymnasium
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common import evaluation
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnvWrapper

from rlotel import context
from rlotel.testing import Telemetry, captured

ENVS, STEPS = 2, 32
ROWS = ENVS * STEPS


class Line(gymnasium.Env):  # type: ignore[misc]  # gymnasium is not installed where this is checked
    """Episodes of eight steps."""

    observation_space = gymnasium.spaces.Box(0, 8, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return np.full(1, self.steps, np.float32), 1.0, self.steps == 8, False, {}


class Lists(VecEnvWrapper):  # type: ignore[misc]
    """Says which episodes ended in a list, which SB3 takes while it collects."""

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        observations, rewards, dones, infos = self.venv.step_wait()
        return observations, rewards, Flags(dones), infos


class Flags(list[Any]):
    """As much of an array as SB3 asks of it."""

    def astype(self, kind: Any) -> Any:
        return np.array(self).astype(kind)


class Once(BaseCallback):  # type: ignore[misc]
    """Does something in the second rollout."""

    def __init__(self, do: Callable[[], object]) -> None:
        super().__init__()
        self.do = do

    def _on_step(self) -> bool:
        if self.num_timesteps == ROWS + 10 * ENVS:
            self.do()
        return True


def model(kind: Any = PPO, env: Any = None) -> Any:
    env = make_vec_env(Line, ENVS, seed=0) if env is None else env
    settings = {"n_steps": STEPS, "batch_size": 16, "n_epochs": 1, "seed": 0, "device": "cpu"}
    return kind("MlpPolicy", env, policy_kwargs={"net_arch": [4]}, **settings)


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    with captured(frameworks=["stable_baselines3"]) as seen:
        yield seen


def alone(test: Callable[[], None]) -> None:
    """Run in a context of its own: what is left current there is of no other test."""
    contextvars.copy_context().run(test)


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("callback", [None, Once(interrupt)])
def test_a_model_that_has_learnt_is_not_kept(telemetry: Telemetry, callback: Any) -> None:
    learning = model()
    parts = [weakref.ref(part) for part in (learning, learning.env, learning.policy)]
    try:
        learning.learn(2 * ROWS, callback=callback)
    except KeyboardInterrupt:
        assert callback is not None
    if callback is not None:
        callback.__dict__.clear()  # which knows its model
    del learning
    gc.collect()
    assert [part() for part in parts] == [None] * 3
    assert telemetry.value("rl.phase.failures", **{"rl.phase.name": "loop"}) in (None, 0)


def test_two_models_that_take_turns_are_no_restarts(telemetry: Telemetry) -> None:
    one, other = model(), model()
    for learning in (one, other, one, other):
        learning.learn(ROWS, reset_num_timesteps=False)
    assert telemetry.value("rl.sample.steps") == 4 * ROWS
    assert sum(point.value or 0 for point in telemetry.points("rl.restarts")) == 0


def test_a_model_that_learns_in_a_callback_of_another_is_none_of_its_iterations(telemetry: Telemetry) -> None:
    inner = model()
    model().learn(2 * ROWS, callback=Once(lambda: inner.learn(ROWS)))
    assert telemetry.value("rl.sample.steps") == 2 * ROWS
    assert telemetry.value("rl.train.steps") == 2 * ROWS // 16


def test_a_session_that_ends_in_a_rollout_leaves_nothing_current() -> None:
    def test() -> None:
        current: list[object] = []

        def end() -> None:
            seen.session.close()
            current.append(context.current())

        with captured(frameworks=["stable_baselines3"]) as seen:
            model().learn(3 * ROWS, callback=Once(end))
        assert [*current, context.current()] == [None, None]
        with captured(frameworks=["stable_baselines3"]) as seen:
            model().learn(ROWS)
            assert [span.parent_id for span in seen.spans("rl.loop")] == [None]
            assert seen.value("rl.sample.steps") == ROWS

    alone(test)


def test_a_session_that_begins_while_a_model_learns_follows_the_next_learning() -> None:
    def test() -> None:
        with ExitStack() as stack:
            opened: list[Telemetry] = []

            def begin() -> None:
                opened.append(stack.enter_context(captured(frameworks=["stable_baselines3"])))

            learning = model()
            learning.learn(3 * ROWS, callback=Once(begin))
            learning.learn(ROWS)
            (seen,) = opened
            assert len(seen.spans("rl.loop")) == 1
            assert seen.value("rl.sample.steps") == ROWS

    alone(test)


def test_episodes_that_end_in_a_list_are_counted(telemetry: Telemetry) -> None:
    model(env=Lists(make_vec_env(Line, ENVS, seed=0))).learn(ROWS)
    assert telemetry.value("rl.sample.episodes") == ENVS * STEPS // 8


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value", "ignore:Degrees of freedom")
def test_an_evaluation_of_no_episodes_has_no_scores_and_ends(telemetry: Telemetry) -> None:
    learning = model()
    found = evaluation.evaluate_policy(
        learning, make_vec_env(Line, 1), n_eval_episodes=0, return_episode_rewards=True
    )
    assert found == ([], [])
    assert context.current() is None
    assert telemetry.points("rl.evaluation.score") == []
    learning.learn(ROWS)
    assert telemetry.value("rl.sample.steps") == ROWS


def test_an_algorithm_without_rollouts_of_a_known_size_is_followed(telemetry: Telemetry) -> None:
    class Odd(PPO):  # type: ignore[misc]
        def learn(self, total_timesteps: int, **keywords: Any) -> Any:
            _, callback = self._setup_learn(total_timesteps)
            self.collect_rollouts(self.env, callback, self.rollout_buffer, STEPS)
            self.train()
            return self

    odd = model(Odd)
    del odd.n_steps
    odd.learn(ROWS)
    assert telemetry.value("rl.sample.steps") == ROWS
    (sample,) = telemetry.spans("rl.sample")
    assert "rl.sample.batch_size" not in sample.attributes


def test_who_cannot_say_what_they_are_is_followed_all_the_same(telemetry: Telemetry) -> None:
    class Silent(VecEnvWrapper):  # type: ignore[misc]
        unwrapped = property(lambda _self: 1 / 0)

        def reset(self) -> Any:
            return self.venv.reset()

        def step_wait(self) -> Any:
            return self.venv.step_wait()

    model(env=Silent(make_vec_env(Line, ENVS, seed=0))).learn(ROWS)
    assert telemetry.value("rl.sample.steps") == ROWS
    (sample,) = telemetry.spans("rl.sample")
    assert sample.attributes["rl.sample.batch_size"] == ROWS
    assert {type(error) for _, error in telemetry.errors} == {ZeroDivisionError}
    telemetry.errors.clear()


def test_steps_that_are_not_seen_are_unknown_and_not_none(telemetry: Telemetry) -> None:
    learning = model()
    learning.env.step = learning.env.step  # an object's own attribute, which no class has
    learning.learn(ROWS)
    (sample,) = telemetry.spans("rl.sample")
    assert not sample.attributes.keys() & {"rl.sample.samples", "rl.sample.steps", "rl.sample.episodes"}
    assert telemetry.points("rl.step.duration") == []
    assert telemetry.value("rl.train.steps") == ROWS // 16
