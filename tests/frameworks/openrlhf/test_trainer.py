"""Iterations of the trainer on stand-ins: what no recorded run shows."""

from typing import Any

import pytest

from rlotel.testing import captured

from .conftest import Openrlhf, rollout

NOTHING: tuple[list[Any], None, int, bool] = ([], None, 0, True)


def batch() -> list[Any]:
    return [rollout(4, 2, 0.0), rollout(4, 3, 1.0), rollout(5, 2, 1.0), rollout(5, 1, 1.0)]


def generate(
    openrlhf: Openrlhf, result: tuple[list[Any], None, int, bool], *, seconds: float = 1.0, buffer: Any = ()
) -> None:
    """A call of `generate_samples` that takes its time, and keeps what is more than one iteration needs."""

    def made(_: Any) -> Any:
        openrlhf.pass_(seconds)
        openrlhf.generator._sample_buffer = buffer
        return result

    openrlhf.play(generate_samples=made)
    openrlhf.generator.generate_samples()


def step(openrlhf: Openrlhf, number: int, rollouts: list[Any], logged: dict[str, Any] | None = None) -> None:
    """What follows: experience, an update of 2 s, a sync of 0.5 s, the log."""
    trainer = openrlhf.trainer

    def update(_: Any) -> None:
        trainer.actor_model_group.async_run_method("fit")
        if trainer.critic_model_group is not None:
            trainer.critic_model_group.async_run_method("fit")
        openrlhf.pass_(2)

    openrlhf.play(ppo_train=update, broadcast_to_vllm=lambda _: openrlhf.pass_(0.5))
    openrlhf.maker.make_experience_batch(rollouts)
    trainer.ppo_train(number - 1)
    trainer.broadcast_to_vllm()
    trainer.save_logs_and_checkpoints(number, logged or {}, {})


def test_rollouts_that_were_made_before_are_no_generation(openrlhf: Openrlhf) -> None:
    openrlhf.make_trainer(rollout__vllm_generate_batch_size=4)
    first, second = batch(), batch()
    generate(openrlhf, (first, None, 4, False), buffer=second)
    step(openrlhf, 1, first)
    generate(openrlhf, (second, None, 0, False), seconds=0.001)
    step(openrlhf, 2, second)
    value = openrlhf.telemetry.value
    assert value("rl.sample.duration", **{"rl.sample.kind": "generate"}) == pytest.approx(1)
    assert value("rl.sample.duration", **{"rl.sample.kind": "wait"}) == pytest.approx(0.001)
    assert value("rl.sample.samples") == 8
    assert value("rl.sample.staleness") == 1  # the policy has moved on since they were made


def test_the_end_of_the_prompts_is_no_iteration(openrlhf: Openrlhf) -> None:
    openrlhf.make_trainer()
    openrlhf.play(init_checkpoint_states=lambda _: {"global_step": 0, "episode": 0})
    openrlhf.trainer.init_checkpoint_states()
    rows = batch()
    generate(openrlhf, (rows, None, 2, False))
    step(openrlhf, 1, rows)
    generate(openrlhf, NOTHING)
    assert openrlhf.telemetry.value("rl.loop.duration") == pytest.approx(3.5)
    assert [span.name for span in openrlhf.telemetry.spans()].count("rl.sample") == 1
    assert openrlhf.telemetry.points("rl.loop.age") == openrlhf.telemetry.points("rl.phase.age") == []


def test_rollouts_that_were_all_filtered_out_are_a_part_of_the_next_iteration(openrlhf: Openrlhf) -> None:
    openrlhf.make_trainer(train__num_episodes=2)
    generate(openrlhf, ([], None, 2, True))
    rows = batch()
    generate(openrlhf, (rows, None, 2, False))
    step(openrlhf, 1, rows)
    assert openrlhf.telemetry.value("rl.loop.duration") == pytest.approx(4.5)
    assert openrlhf.telemetry.value("rl.sample.duration") == pytest.approx(2)
    assert openrlhf.telemetry.value("rl.sample.samples") == 4


def test_an_iteration_is_numbered_from_the_checkpoint_on(openrlhf: Openrlhf) -> None:
    openrlhf.make_trainer()
    openrlhf.play(init_checkpoint_states=lambda _: {"global_step": 7, "episode": 0})
    openrlhf.trainer.init_checkpoint_states()
    rows = batch()
    generate(openrlhf, (rows, None, 2, False))
    step(openrlhf, 8, rows)
    assert [span.attributes["rl.loop.iteration"] for span in openrlhf.telemetry.spans("rl.loop")] == [8]
    assert [point for point in openrlhf.telemetry.points("rl.restarts") if point.value] == []


@pytest.mark.parametrize("where", ["generate_samples", "ppo_train", "save_logs_and_checkpoints"])
def test_a_failure_passes_through_and_ends_the_iteration(openrlhf: Openrlhf, where: str) -> None:
    openrlhf.make_trainer()
    error = FloatingPointError("overflow")

    def fail(_: Any) -> Any:
        openrlhf.trainer.actor_model_group.async_run_method("fit")
        raise error

    rows = batch()
    if where != "generate_samples":
        generate(openrlhf, (rows, None, 2, False))
        openrlhf.maker.make_experience_batch(rows)
    openrlhf.play(**{"train_step": lambda _: openrlhf.trainer.ppo_train(0), where: fail})
    calls = {
        "generate_samples": lambda: openrlhf.generator.generate_samples(),
        "ppo_train": lambda: openrlhf.trainer.train_step(rows, 0),
        "save_logs_and_checkpoints": lambda: openrlhf.trainer.save_logs_and_checkpoints(1, {}, {}),
    }
    with pytest.raises(FloatingPointError) as raised:
        calls[where]()
    assert raised.value is error
    (loop,) = openrlhf.telemetry.spans("rl.loop")
    assert loop.attributes["error.type"] == "FloatingPointError"
    assert openrlhf.telemetry.points("rl.phase.age") == []
    failed = {"generate_samples": "rl.sample", "ppo_train": "rl.train"}.get(where)
    if failed is not None:
        assert [span.attributes["error.type"] for span in openrlhf.telemetry.spans(failed)] == [
            "FloatingPointError"
        ]


def test_models_that_take_turns_are_timed_one_after_the_other(openrlhf: Openrlhf) -> None:
    trainer = openrlhf.make_trainer(critic=True, ds__enable_sleep=True)

    def update(_: Any) -> None:
        for group, seconds in ((trainer.critic_model_group, 2), (trainer.actor_model_group, 3)):
            group.async_run_method("reload_states")
            group.async_run_method("fit")
            openrlhf.pass_(seconds)
            group.async_run_method("offload_states")

    rows = batch()
    generate(openrlhf, (rows, None, 2, False))
    openrlhf.maker.make_experience_batch(rows)
    openrlhf.play(ppo_train=update)
    trainer.ppo_train(0)
    trainer.save_logs_and_checkpoints(1, {}, {})
    seconds = {
        role: openrlhf.telemetry.value("rl.train.duration", **{"rl.role": role}) for role in ("actor", "critic")
    }
    assert seconds == {"actor": pytest.approx(3), "critic": pytest.approx(2)}


def test_a_forward_pass_lasts_until_its_answer_is_read_or_its_gpus_are_needed(openrlhf: Openrlhf) -> None:
    openrlhf.make_trainer()
    maker, groups = openrlhf.maker, openrlhf.groups

    def ask(arguments: Any) -> Any:
        if arguments["sync_condition"]:
            openrlhf.pass_(1)
            arguments["group"].async_run_method("empty_cache")
        return [object()]

    def make(_: Any) -> None:
        maker._dispatch_forward(groups["actor_model_group"], True)
        answer = maker._dispatch_forward(groups["initial_model_group"], False)
        maker._dispatch_forward(groups["reward_model_group"], False)  # whose answer is read before
        openrlhf.pass_(2)
        groups["reward_model_group"].async_run_method("empty_cache")
        openrlhf.pass_(4)
        maker._flatten_results(answer, 1)

    openrlhf.play(make_experience_batch=make, _dispatch_forward=ask)
    openrlhf.trainer.reward_model_group = groups["reward_model_group"]
    maker.make_experience_batch([rollout(4, 2, None) for _ in range(4)])
    openrlhf.play()
    openrlhf.trainer.save_logs_and_checkpoints(1, {}, {})
    value = openrlhf.telemetry.value
    assert value("rl.phase.duration", **{"rl.phase.name": "logprob"}) == pytest.approx(1)
    assert value("rl.phase.duration", **{"rl.phase.name": "ref_logprob"}) == pytest.approx(6)
    assert value("rl.reward.duration") == pytest.approx(2)
    assert openrlhf.telemetry.points("rl.reward.zero_variance.ratio") == []  # they are not known before


def test_a_checkpoint_that_is_not_written_is_none(openrlhf: Openrlhf) -> None:
    trainer = openrlhf.make_trainer(ckpt__disable_ds=True, ckpt__save_hf=False)
    openrlhf.play(
        save_logs_and_checkpoints=lambda _: trainer.actor_model_group.async_run_method("save_checkpoint")
    )
    trainer.save_logs_and_checkpoints(2, {}, {})
    assert openrlhf.telemetry.points("rl.checkpoint.duration") == []
    assert openrlhf.telemetry.points("rl.checkpoint.step") == []


def test_steps_are_carried_over_where_a_batch_is_not_full(openrlhf: Openrlhf) -> None:
    openrlhf.make_trainer(train__batch_size=8, train__max_epochs=1)
    counted = []
    for number in (1, 2, 3):
        rows = batch()
        generate(openrlhf, (rows, None, 2, False))
        step(openrlhf, number, rows)
        counted.append(openrlhf.telemetry.value("rl.train.steps", **{"rl.role": "actor"}))
    assert counted == [0, 1, 1]


def test_values_that_are_unknown_are_absent_and_no_numbers_are_refused(openrlhf: Openrlhf) -> None:
    openrlhf.make_trainer(train__partial_rollout_enable=True)
    rows = batch()
    generate(openrlhf, (rows, None, 2, False))
    step(
        openrlhf,
        1,
        rows,
        {"kl": 0.0, "policy_loss": 0.5, "entropy_loss": None, "generated_samples": ["text", 1.0]},
    )
    assert openrlhf.telemetry.points("rl.kl.divergence") == []  # there is no reference model
    assert openrlhf.telemetry.points("rl.entropy") == []
    assert openrlhf.telemetry.points("rl.sample.staleness") == []  # rollouts are made by several policies
    assert openrlhf.telemetry.value("rl.train.loss") == 0.5
    assert openrlhf.telemetry.value("rl.reward.zero_variance.ratio") == 0.5


def test_only_the_trainers_own_queue_brings_rollouts(openrlhf: Openrlhf) -> None:
    trainer = openrlhf.make_trainer(train__async_enable=True)
    trainer.rollout_queue = openrlhf.queue()
    rows = batch()
    openrlhf.play(get=lambda _: (rows, {}, None, 1.0))
    openrlhf.queue().get()
    assert openrlhf.telemetry.points("rl.loop.age") == []
    payloads: list[Any] = [("eval", 2, {}), (rows, {}, None, 1.0), "done"]
    for payload in payloads:

        def get(_: Any, payload: Any = payload) -> Any:
            openrlhf.pass_(3)
            return payload

        openrlhf.play(get=get)
        trainer.rollout_queue.get(block=True)
        if isinstance(payload[0], list):
            step(openrlhf, 1, rows)
    assert openrlhf.telemetry.value("rl.sample.duration", **{"rl.sample.kind": "wait"}) == pytest.approx(3)
    assert openrlhf.telemetry.value("rl.loop.duration") == pytest.approx(5.5)


def test_where_actors_are_started_their_base_classes_are_left_alone(
    standins: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.orig_argv", ["python", "train.py"])
    with captured(frameworks=("openrlhf",)) as telemetry:
        openrlhf = Openrlhf(telemetry)
        base = openrlhf.module("trainer.ppo_trainer").BasePPOTrainer
        assert not hasattr(base.ppo_train, "__wrapped__")
        assert hasattr(openrlhf.maker.make_experience_batch, "__wrapped__")
