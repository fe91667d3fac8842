"""Rollouts: what is counted of them, and when environments score and act, whoever they belong to."""

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Batch, Sky, answered


def one_iteration(sky: Sky, trainer: Any, inside: Callable[[], object], **logged: Any) -> None:
    """An iteration of the synchronous trainer in which rollouts are made so."""
    trainer.global_step += 1
    sky.parts["generate"] = lambda _: inside()
    with sky.timer("step"), sky.timer("generate"):
        sky.generate(trainer)
    sky.log(trainer, **logged)


def test_rollouts_are_counted_by_what_became_of_them(sky: Sky) -> None:
    reasons = ["stop", "length", "abort", "length"]
    one_iteration(sky, sky.trainer(), lambda: answered([3, 3, 4, 4], [5, 6, 7, 8], stop_reasons=reasons))
    assert {
        "samples": sky.value("rl.sample.samples"),
        "episodes": sky.value("rl.sample.episodes"),
        "prompt": sky.value("rl.sample.tokens", token_type="prompt"),
        "completion": sky.value("rl.sample.tokens", token_type="completion"),
        "truncated": sky.value("rl.sample.truncated.ratio"),
        "aborted": sky.value("rl.sample.aborted.ratio"),
    } == {"samples": 4, "episodes": 4, "prompt": 14, "completion": 26, "truncated": 0.5, "aborted": 0.25}


def test_what_a_generator_does_not_say_is_not_made_up(sky: Sky) -> None:
    one_iteration(sky, sky.trainer(), lambda: answered([3], [5], stop_reasons=None))
    for metric in ("rl.sample.truncated.ratio", "rl.step.duration", "rl.environment.episode.turns.mean"):
        assert sky.telemetry.points(metric) == []
    assert sky.value("rl.sample.steps") == 0


def test_turns_that_are_rows_of_their_own_are_one_episode(sky: Sky) -> None:
    trainer = sky.trainer(settings={"generator.step_wise_trajectories": True})
    turns = [False, False, True, True]
    one_iteration(
        sky,
        trainer,
        lambda: answered([3, 8, 13, 3], [5, 5, 5, 9], is_last_step=turns),
        **{"generate/avg_num_tokens": 6.0},
    )
    assert (sky.value("rl.sample.samples"), sky.value("rl.sample.episodes")) == (4, 2)
    assert sky.value("rl.environment.episode.length.mean") == 12.0


def test_a_last_step_judges_and_any_other_acts(sky: Sky) -> None:
    environment = sky.make_environment()

    def step(arguments: Any) -> dict[str, bool]:
        sky.pass_(arguments["action"])
        return {"done": arguments["action"] == 3.0}

    def rollouts() -> dict[str, Any]:
        for seconds in (1.0, 1.0, 3.0):
            environment.step(seconds)
            sky.pass_(5.0)
        return answered([3], [5])

    sky.parts["step"] = step
    one_iteration(sky, sky.trainer(), rollouts)
    assert sky.value("rl.reward.duration") == 3.0
    assert sky.value("rl.phase.duration", phase_name="tool") == 2.0
    assert sky.value("rl.sample.duration") == 20.0
    assert sky.value("rl.sample.steps") == 3
    assert sky.value("rl.environment.episode.turns.mean") == 3.0
    assert sky.value("rl.step.duration") == pytest.approx(5 / 3)
    assert sky.names() == ["tool", "reward", "sample", "loop"]


def test_a_step_that_asks_its_base_class_is_one(sky: Sky) -> None:
    class Derived(sky.environment):  # type: ignore[misc, name-defined]
        def step(self, action: Any) -> Any:
            return super().step(action)

    sky.parts["step"] = lambda _: {"done": True}
    sky.make_environment()  # the base class is watched as well
    sky.gym.register("derived", Derived)
    environment = sky.gym.make("derived")
    one_iteration(sky, sky.trainer(), lambda: (environment.step(""), answered([3], [5]))[1])
    assert sky.value("rl.sample.steps") == 1


def test_steps_of_an_evaluation_are_no_steps_of_training(sky: Sky) -> None:
    trainer, environment = sky.trainer(), sky.make_environment()
    sky.parts["step"] = lambda _: {"done": True}
    sky.parts["generate"] = lambda _: (environment.step(""), answered([3], [5]))[1]
    with sky.timer("eval", 1.0):
        sky.generate(trainer, "eval")
    assert sky.names() == ["evaluate"]
    assert sky.value("rl.sample.steps") == 0


def test_an_environment_that_fails_is_named_and_its_exception_goes_on(sky: Sky) -> None:
    trainer, environment = sky.trainer(), sky.make_environment()
    failure = ConnectionError("the sandbox is gone")

    def step(_: Any) -> Any:
        raise failure

    sky.parts["step"] = step
    with pytest.raises(ConnectionError) as raised:
        one_iteration(sky, trainer, lambda: environment.step(""))
    assert raised.value is failure
    assert [(name, span.status_code) for name, span in zip(sky.names(), sky.telemetry.spans(), strict=True)] == [
        ("reward", "error"),
        ("sample", "error"),
        ("loop", "error"),
    ]
    assert {span.attributes["error.type"] for span in sky.telemetry.spans()} == {"ConnectionError"}


def test_an_asynchronous_rollout_that_fails_is_exported_before_its_task_ends_the_process(sky: Sky) -> None:
    trainer = sky.trainer("async")
    trainer.global_step = 1
    flushed: list[float] = []

    def flush(seconds: float) -> bool:
        flushed.append(seconds)
        return True

    sky.telemetry.session.process.flush = flush

    def fail(_: Any) -> Any:
        raise ConnectionError

    sky.parts["generate"] = fail
    timer = sky.module("utils.utils").Timer("step")
    timer.__enter__()
    with pytest.raises(ConnectionError):
        sky.generate(trainer)
    assert sky.names() == ["sample", "loop"]
    assert [span.status_code for span in sky.telemetry.spans()] == ["error", "error"]
    assert len(flushed) == 1


def test_rollouts_that_outlive_their_iteration_count_for_the_rates_of_the_one_they_end_in(sky: Sky) -> None:
    trainer = sky.trainer("async")

    def rollouts(_: Any) -> dict[str, Any]:
        first.__exit__(None, None, None)
        sky.log(trainer)
        trainer.global_step = 2
        second.__enter__()
        sky.pass_(2.0)
        return answered([3], [5])

    sky.parts["generate"] = rollouts
    trainer.global_step = 1
    first, second = (sky.module("utils.utils").Timer("step") for _ in range(2))
    first.__enter__()
    sky.pass_(1.0)
    sky.generate(trainer)
    second.__exit__(None, None, None)
    sky.log(trainer)
    sky.run(trainer.train())
    (rollout,) = sky.telemetry.spans("rl.sample")
    assert rollout.attributes["rl.loop.iteration"] == 1
    assert sky.value("rl.tokens.rate") == 8 / 2.0


def test_updates_count_their_steps_and_tokens_once_an_epoch_without_padding(sky: Sky) -> None:
    trainer = sky.trainer()
    trainer.global_step = 1
    with sky.timer("step"):
        with sky.timer("fwd_logprobs_values_reward"):
            trainer.fwd_logprobs_values_reward(Batch([10, 20, 30, 99], pad_size=1))
            for model in ("critic", "ref", "policy"):
                trainer.dispatch.forward(model, None)
        for model, timer in (("critic", "critic_train"), ("policy", "policy_train")):
            with sky.timer(timer, 1.0):
                for _ in range(3):
                    trainer.dispatch.optim_step(model)
    sky.log(trainer)
    for role in ("actor", "critic"):
        assert sky.value("rl.train.tokens", role=role) == 2 * 60
        assert sky.value("rl.train.steps", role=role) == 3
    assert sky.names() == ["value", "ref_logprob", "logprob", "train", "train", "loop"]


def test_a_step_that_is_skipped_is_none(sky: Sky) -> None:
    trainer, norms = sky.trainer(), [1.0, float("nan"), None, float("inf")]
    trainer.global_step = 1
    sky.parts["optim_step"] = lambda _: norms.pop()
    with sky.timer("step"), sky.timer("policy_train"):
        for _ in range(4):
            trainer.dispatch.optim_step("policy")
    sky.log(trainer)
    assert sky.value("rl.train.steps", role="actor") == 2
