"""Rollouts and updates: what is counted, where it is scored, and when new weights arrive."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rlotel.testing import captured

from .conftest import Nemo, Rows, batch, rollout


def counts(nemo: Nemo) -> dict[str, Any]:
    """Everything that was counted, without what is 0."""
    found: dict[str, Any] = {}
    counted = {"sample": ("samples", "episodes", "steps", "tokens"), "train": ("steps", "tokens", "flops")}
    for phase, name in ((phase, name) for phase, names in counted.items() for name in names):
        for point in nemo.telemetry.points(f"rl.{phase}.{name}"):
            told = [point.attributes.get(key) for key in ("rl.role", "rl.token.type")]
            if point.value:
                found[" ".join(str(part) for part in (phase, *told, name) if part)] = point.value
    return found


def update(nemo: Nemo, timer: Any, *lengths: int) -> None:
    with timer.time("policy_training"):
        nemo.policy.train(batch(*lengths), None)
        nemo.pass_(2)


def seconds(nemo: Nemo, name: str) -> list[tuple[Any, Any]]:
    told = ("rl.phase.name", "rl.sample.kind", "rl.role")
    return [
        (next((point.attributes[key] for key in told if key in point.attributes), None), point.sum)
        for point in nemo.telemetry.points(f"rl.{name}.duration")
    ]


def test_rollouts_are_counted_as_they_are_made(nemo: Nemo) -> None:
    """Those that dynamic sampling leaves out are, too; what environments say is given, not generated."""
    rollouts = nemo.module("experience.rollouts")

    def body() -> None:
        timer = nemo.timer()
        for _ in range(2):
            with timer.time("total_step_time"), timer.time("generation"):
                rollouts.run_multi_turn_rollout(None, None, None, {}, 64)
        with timer.time("total_step_time"):
            update(nemo, timer, 110, 120)
        nemo.logger.log_metrics(
            {"loss": 1.0, "mean_gen_tokens_per_sample": 999.0, "avg_turns_per_sample": 9.0}, 1, "train"
        )
        nemo.logger.log_metrics({}, 1, "timing/train")

    made = {"message_log": [rollout(10, 100), rollout(10, 90, environment=20)]}
    nemo.play(
        run_multi_turn_rollout=lambda **_: (made, {"avg_turns_per_sample": 1.5}),
        train=lambda **_: {"loss": Rows([1])},
    )
    nemo.train(body)
    assert counts(nemo) == {
        "sample samples": 4,
        "sample episodes": 4,
        "sample steps": 6,
        "sample prompt tokens": 80,
        "sample completion tokens": 380,
        "train actor steps": 1,
        "train actor tokens": 230,
    }
    first, _ = nemo.telemetry.spans("rl.sample")
    assert (first.attributes["rl.sample.samples"], first.attributes["rl.sample.tokens"]) == (2, 230)


@pytest.mark.parametrize("name", ["run_async_multi_turn_rollout", "run_nemo_gym_rollout_sync"])
def test_a_call_that_makes_others_counts_once(nemo: Nemo, name: str) -> None:
    """Synchronous entry points run asynchronous ones; those of NeMo Gym give an object."""
    rollouts = nemo.module("experience.rollouts")
    batch, metrics = {"message_log": [rollout(10, 100)]}, {"avg_turns_per_sample": 1.0}

    async def inner() -> list[Any]:
        return [one async for one in rollouts.run_async_multi_turn_rollout_groups(None, None, None, {}, 64, 1)]

    def outer(**_: Any) -> Any:
        assert asyncio.run(inner()) == ["a group"]
        return (
            (batch, metrics) if "gym" not in name else SimpleNamespace(final_batch=batch, rollout_metrics=metrics)
        )

    def body() -> None:
        timer, more = (
            nemo.timer(),
            {"max_seq_len": 64}
            if "gym" not in name
            else {"generation_config": {}, "log_full_result_tables": False},
        )
        with timer.time("total_step_time"), timer.time("generation"):
            getattr(rollouts, name)(None, None, None, {}, **more)

    nemo.play(**{name: outer, "run_async_multi_turn_rollout_groups": lambda **_: ["a group"]})
    nemo.train(body)
    assert counts(nemo) == {
        "sample samples": 1,
        "sample episodes": 1,
        "sample steps": 1,
        "sample prompt tokens": 10,
        "sample completion tokens": 100,
    }


def test_rollouts_that_others_make_are_counted_as_they_are_trained_on(nemo: Nemo) -> None:
    """Asynchronous: the trainer waits, and knows its batch and what was logged of it."""

    def body() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"):
            with timer.time("exposed_generation"):
                nemo.pass_(8)
            update(nemo, timer, 110, 120, 130, 140)
            with timer.time("exposed_generation"):  # for rollouts that must end before weights move
                nemo.pass_(1)
        nemo.logger.log_metrics(
            {"loss": 1.0, "mean_gen_tokens_per_sample": 95.5, "avg_turns_per_sample": 1.25}, 1, "train"
        )
        nemo.logger.log_metrics({}, 1, "timing/train")

    nemo.play(train=lambda **_: {"loss": Rows([1, 1]), "total_flops": 3e12})
    nemo.train(body, "grpo:async_grpo_train")
    assert counts(nemo) == {
        "sample samples": 4,
        "sample episodes": 4,
        "sample steps": 5,
        "sample prompt tokens": 118,
        "sample completion tokens": 382,
        "train actor steps": 2,
        "train actor tokens": 500,
        "train actor flops": 3e12,
    }
    assert seconds(nemo, "sample") == [("wait", 9)]


def test_rollouts_through_a_transfer_queue_are_counted_as_they_are_logged(nemo: Nemo) -> None:
    policy = nemo.module("models.policy.tq_policy").TQPolicy()

    def body() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"):
            policy.prepare_step(num_samples=4, group_size=2)
            with timer.time("generation"):
                nemo.pass_(8)
                nemo.logger.log_metrics(
                    {"mean_gen_tokens_per_sample": 95.5, "avg_turns_per_sample": 1.0}, 1, "train"
                )
            with timer.time("policy_training"):
                policy.train_from_meta(SimpleNamespace(sequence_lengths=[110, 120, 130, 140]), loss_fn=None)
        nemo.logger.log_metrics(
            {"loss": 1.0, "mean_gen_tokens_per_sample": 95.5, "avg_turns_per_sample": 1.0}, 1, "train"
        )
        nemo.logger.log_metrics({}, 1, "timing/train")

    nemo.play(train_from_meta=lambda **_: {"loss": Rows([1])})
    nemo.train(body, "grpo_sync:grpo_train_sync", policy=policy)
    assert counts(nemo) == {
        "sample samples": 4,
        "sample episodes": 4,
        "sample steps": 4,
        "sample prompt tokens": 118,
        "sample completion tokens": 382,
        "train actor steps": 1,
        "train actor tokens": 500,
    }


def test_the_single_controller_counts_what_it_streams(nemo: Nemo) -> None:
    """It does not log what the rollouts consist of: prompt and completion tokens stay together."""
    policy = nemo.module("models.policy.tq_policy").TQPolicy()

    def iteration() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"):
            for lengths in ([110, 120], [130, 140]):
                with timer.time("exposed_generation"):
                    nemo.pass_(4)
                with timer.time("policy_training"):
                    policy.train_microbatches_from_meta(SimpleNamespace(sequence_lengths=lengths))
            with timer.time("policy_training"):
                policy.finish_train_step()
        nemo.logger.log_metrics({"loss": 1.0}, step=1, prefix="train")
        nemo.logger.log_metrics({}, step=1, prefix="timing/train")

    nemo.play(finish_train_step=lambda: {"loss": Rows([1]), "total_flops": 2e12, "num_ranks": 8})
    iteration()
    assert counts(nemo) == {
        "sample samples": 4,
        "sample episodes": 4,
        "sample tokens": 500,
        "train actor steps": 1,
        "train actor tokens": 500,
        "train actor flops": 2e12,
    }


def test_ppo_updates_two_models_several_times(nemo: Nemo) -> None:
    """Each epoch is a further pass over the same rows. FLOPs of critics are unknown."""
    critic = nemo.module("models.policy.lm_policy").Policy()

    def body() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"):
            with timer.time("exposed_generation"):
                nemo.pass_(1)
            with timer.time("value_inference"):
                nemo.pass_(3)
            for _ in range(2):
                with timer.time("value_training"):
                    critic.train(batch(50, 60), None)
                    nemo.pass_(2)
                with timer.time("policy_training"):
                    nemo.policy.train(batch(50, 60), None)
                    nemo.pass_(4)
        nemo.logger.log_metrics({"loss": 1.0}, 1, "train")
        nemo.logger.log_metrics({}, 1, "timing/train")

    nemo.play(train=lambda **_: {"loss": Rows([1]), "total_flops": 1e12})
    nemo.train(body, "ppo:async_ppo_train", value_model=critic)
    assert counts(nemo) == {
        "sample samples": 2,
        "sample episodes": 2,
        "sample tokens": 110,
        "train actor steps": 2,
        "train actor tokens": 220,
        "train critic steps": 2,
        "train critic tokens": 220,
    }
    assert sorted(seconds(nemo, "train")) == [("actor", 8), ("critic", 4)]
    assert seconds(nemo, "phase") == [("value", 3)]
    (identified,) = nemo.telemetry.points("rl.loop.duration")
    assert identified.attributes["rl.algorithm"] == "PPO"


def test_an_update_without_a_timer_is_timed(nemo: Nemo) -> None:
    """Reward models are trained in `total_step_time` alone; a validation is no update."""

    def train(eval_mode: bool, **_: Any) -> Any:
        nemo.pass_(1 if eval_mode else 5)
        return {"loss": Rows([1])}

    def body() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"):
            nemo.policy.train(batch(10, 20), None, eval_mode=False)
            with nemo.timer().time("total_validation_time"):
                nemo.policy.train(batch(100), None, eval_mode=True)

    nemo.play(train=train)
    nemo.train(body, "rm:rm_train")
    assert counts(nemo) == {"train actor steps": 1, "train actor tokens": 30}
    assert (seconds(nemo, "train"), seconds(nemo, "phase")) == ([("actor", 5)], [("evaluate", 1)])


def test_a_policy_of_another_shape_trains_all_the_same(nemo: Nemo) -> None:
    """What it gives back is none of our business; that we can't count it is said."""
    results: list[Any] = []

    def body() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"), timer.time("policy_training"):
            results.append(nemo.policy.train({"rows": []}, None))
            nemo.pass_(3)

    nemo.play(train=lambda **_: "what a plug-in gives")
    nemo.train(body)
    assert (results, counts(nemo), seconds(nemo, "train")) == (["what a plug-in gives"], {}, [("actor", 3)])
    (place, error), nemo.telemetry.errors[:] = nemo.telemetry.errors[0], []
    assert (place, type(error)) == ("nemo_rl.models.policy.lm_policy:Policy.train", KeyError)


def test_the_reference_is_timed_where_it_runs(nemo: Nemo) -> None:
    """DPO asks it before an iteration begins."""

    def body() -> None:
        nemo.policy.get_reference_policy_logprobs(batch(10))
        with nemo.timer().time("total_step_time"):
            nemo.policy.train(batch(10), None)

    nemo.play(get_reference_policy_logprobs=lambda **_: nemo.pass_(3), train=lambda **_: {"loss": Rows([1])})
    nemo.train(body, "dpo:dpo_train")
    (reference,) = nemo.telemetry.spans("rl.phase")
    assert (reference.attributes["rl.phase.name"], reference.attributes["rl.role"]) == ("ref_logprob", "reference")
    assert (reference.parent_id, reference.end_ns - reference.start_ns) == (None, 3e9)


def test_rewards_are_timed_where_they_are_computed(nemo: Nemo) -> None:
    """In many threads at once they take as long as any of them does; those of a validation are no part of it."""
    rollouts = nemo.module("experience.rollouts")

    def score() -> None:
        rollouts.calculate_rewards({}, {})

    def body() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"):
            with timer.time("generation"):
                score()
                nemo.pass_(7)
                score()
            with timer.time("reward_calculation"):  # baselines
                nemo.pass_(1)
            with nemo.timer().time("total_validation_time"):
                score()

    nemo.play(calculate_rewards=lambda **_: nemo.pass_(4))
    nemo.train(body)
    assert seconds(nemo, "reward") == [(None, 8)]
    assert seconds(nemo, "sample") == [("generate", 15)]
    assert seconds(nemo, "phase") == [("advantage", 1), ("evaluate", 4)]
    loop, sample = nemo.telemetry.spans("rl.loop")[0], nemo.telemetry.spans("rl.sample")[0]
    assert {reward.parent_id for reward in nemo.telemetry.spans("rl.reward")} == {sample.span_id}
    assert sample.parent_id == loop.span_id


def test_a_transfer_of_weights_is_seen_wherever_it_is_made(nemo: Nemo) -> None:
    grpo = nemo.module("algorithms.grpo")
    synchronizer = nemo.module("weight_sync.ipc_weight_synchronizer").IPCWeightSynchronizer()

    def body() -> None:
        grpo.refit_policy_generation(None, None, True)  # before the first iteration
        timer = nemo.timer()
        with timer.time("total_step_time"):
            with timer.time("prepare_for_generation/total"):
                grpo.refit_policy_generation(None, None, True, timer=timer)
                nemo.pass_(1)
            grpo.refit_policy_generation(None, None, True)  # for a validation
        nemo.logger.log_metrics({}, 1, "timing/train")
        with timer.time("total_step_time"), timer.time("prepare_for_generation/total"):
            nemo.pass_(1)  # weights are there already: no transfer
        nemo.logger.log_metrics({}, 2, "timing/train")

    nemo.play(
        refit_policy_generation=lambda **_: synchronizer.sync_weights(timer=None),
        sync_weights=lambda **_: nemo.pass_(3),
    )
    nemo.train(body, master_config={"policy": {"generation": {"backend": "sglang"}}})
    (sync,) = nemo.telemetry.points("rl.sync.duration")
    assert (sync.count, sync.sum) == (2, 9)  # one without an iteration, one of the first
    assert (sync.attributes["rl.sync.source"], sync.attributes["rl.sync.destination"]) == ("learner", "sglang")
    assert [span.attributes.get("rl.loop.iteration") for span in nemo.telemetry.spans("rl.sync")] == [None, 1, 1]
    assert seconds(nemo, "phase") == [("offload", 5)]


def test_a_worker_that_makes_rollouts_reports_them_as_a_worker(standins: None) -> None:
    """The trainer reports their duration and what they consist of; here it is what one worker took."""
    with captured({"RLOTEL_ATTEMPT": "launched elsewhere"}, frameworks=("nemo_rl", "threads")) as telemetry:
        nemo = Nemo(telemetry)
        rollouts = nemo.module("experience.rollouts")

        def make(**_: Any) -> Any:
            for _turn in range(2):
                nemo.pass_(3)
                rollouts.calculate_rewards({}, {})
            return {"message_log": [rollout(10, 100)]}, {}

        nemo.play(run_async_multi_turn_rollout=make, calculate_rewards=lambda **_: nemo.pass_(1))
        for _group in range(2):
            rollouts.run_async_multi_turn_rollout(None, None, None, {}, 64)
            telemetry.session.flush()  # as after a while: whose run it is has settled

        workers = {
            point.attributes["rl.phase.name"]: (point.count, point.sum)
            for point in telemetry.points("rl.worker.duration")
        }
        assert workers == {"sample": (2, 16), "reward": (2, 4)}
        assert not any(telemetry.points(f"rl.{name}") for name in ("sample.samples", "reward.duration"))
        *_, scored, made = telemetry.spans()
        assert (scored.name, made.name, scored.parent_id) == ("rl.reward", "rl.sample", made.span_id)
