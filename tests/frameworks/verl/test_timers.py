"""What verl's own timers and log calls become, one situation at a time; the clock of these tests stands still."""

import asyncio
import math
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest

from rlotel.semconv import metrics as m
from rlotel.testing import Telemetry

pytestmark = pytest.mark.filterwarnings("ignore")


CONFIG: dict[str, Any] = {
    "algorithm": {"adv_estimator": "gae"},
    "actor_rollout_ref": {
        "model": {"path": "Qwen/Qwen2.5-0.5B"},
        "rollout": {"n": 2, "name": "sglang", "nnodes": 1, "n_gpus_per_node": 8},
        "actor": {"ppo_mini_batch_size": 2, "ppo_epochs": 2},
    },
    "critic": {"ppo_mini_batch_size": 4, "ppo_epochs": 1, "model": {"path": "/models/critic"}},
    "data": {"train_files": ["~/data/math/train.parquet"], "train_batch_size": 4},
    "trainer": {"nnodes": 2, "n_gpus_per_node": 8, "default_local_dir": "gs://bucket/run"},
}


def timer(name: str, raw: dict[str, float] | None = None) -> Any:
    from verl.utils.debug import marked_timer

    return marked_timer(name, {} if raw is None else raw)


def tracking(config: dict[str, Any] = CONFIG) -> Any:
    from verl.utils.tracking import Tracking

    return Tracking("project", "experiment", default_backend=["console"], config=config)


def spend(telemetry: Telemetry, seconds: float, *names: str) -> None:
    for name in names:
        with timer(name):
            telemetry.clock.advance(seconds)


def log(telemetry: Telemetry, **more: float) -> None:
    tracking().log(data={"timing_s/step": 1.0, **more}, step=1)


def logged(data: dict[str, Any]) -> None:
    """One iteration of which verl logs this."""
    run = tracking()
    with timer("step"):
        pass
    run.log(data={"timing_s/step": 1.0, **data}, step=1)


def of(phase: str) -> dict[str, str]:
    return {"rl.phase.name": phase}


def standing_in(module: str, function: Any) -> Any:
    """The function as if that module had it."""
    names = {**function.__globals__, "__name__": module}
    return FunctionType(function.__code__, names, function.__name__, None, function.__closure__)


def test_a_phase_counts_once_however_many_statistics_of_it_are_logged(telemetry: Telemetry) -> None:
    with timer("step"):
        telemetry.clock.advance(40)
        spend(telemetry, 60, "gen")
    parts = {f"timing_s/agent_loop/generate_sequences/{name}": value for name, value in (("min", 10), ("max", 58))}
    tracking().log(data={"timing_s/step": 100, "timing_s/gen": 60, **parts}, step=1)
    assert telemetry.value(m.SAMPLE_DURATION) == 60
    assert telemetry.value(m.PHASE_TIME, **of("sample")) == 60
    assert telemetry.value(m.LOOP_DURATION) == 100
    assert {point.unit for point in telemetry.points(m.LOOP_DURATION)} == {"s"}


@pytest.mark.parametrize(
    ("module", "kind", "idle"),
    [
        ("verl.trainer.ppo.ray_trainer", "generate", 0.0),
        ("verl.experimental.separation.ray_trainer", "generate", 0.0),
        ("verl.trainer.ppo.v1.trainer_base", "wait", 1.0),
        ("verl.trainer.main_ppo_sync", "wait", 1.0),
        ("verl.experimental.one_step_off_policy.ray_trainer", "wait", 1.0),
        ("verl.experimental.fully_async_policy.fully_async_trainer", "wait", 1.0),
        ("recipe.fully_async_policy.fully_async_trainer", "wait", 1.0),
        ("recipe.dapo.dapo_ray_trainer", "generate", 0.0),
    ],
)
def test_gen_is_a_wait_where_others_make_the_rollouts(
    telemetry: Telemetry, module: str, kind: str, idle: float
) -> None:
    def step() -> None:
        with timer("gen"):
            telemetry.clock.advance(5)

    with timer("step"):
        standing_in(module, step)()
    log(telemetry)
    assert telemetry.value(m.SAMPLE_DURATION, **{"rl.sample.kind": kind}) == 5
    assert telemetry.value(m.LOOP_IDLE_RATIO) == idle


def trainer(steps: int) -> Any:
    """One of verl's, that is asked whether there is a checkpoint, as at the start of every run."""
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer

    made = object.__new__(RayPPOTrainer)
    made.config = SimpleNamespace(trainer=SimpleNamespace(resume_mode="disable"))
    made._load_checkpoint()
    made.global_steps = steps
    return made


def iterations(telemetry: Telemetry) -> list[object]:
    return [loop.attributes["rl.loop.iteration"] for loop in telemetry.spans("rl.loop")]


def test_the_trainers_own_number_is_that_of_the_iteration(telemetry: Telemetry) -> None:
    made = trainer(417)
    with timer("step"):
        pass
    log(telemetry)
    made.global_steps += 1
    with timer("step"):
        pass
    log(telemetry)
    assert iterations(telemetry) == [417, 418]


def test_without_it_iterations_are_counted_and_set_right_by_what_is_logged(telemetry: Telemetry) -> None:
    for told in (None, None, 40, None):
        with timer("step"):
            pass
        log(telemetry, **({} if told is None else {"training/global_step": told}))
    assert iterations(telemetry) == [1, 2, 3, 41]


def test_nested_transfers_of_weights_count_once(telemetry: Telemetry) -> None:
    with timer("step"), timer("sync_rollout_weights"):
        telemetry.clock.advance(1)
        spend(telemetry, 2, "update_weights")
    log(telemetry)
    assert telemetry.value(m.SYNC_DURATION) == 3
    assert len(telemetry.spans("rl.sync")) == 1


def test_a_name_with_verls_prefix_in_it_is_the_transfer_all_the_same(telemetry: Telemetry) -> None:
    with timer("step"):
        spend(telemetry, 2, "timing_s/param_sync")
    log(telemetry)
    assert telemetry.value(m.SYNC_DURATION) == 2


@pytest.mark.parametrize("known", [True, False])
def test_rounds_for_want_of_rollouts_are_one_iteration(telemetry: Telemetry, known: bool) -> None:
    """DAPO."""
    made, raw = trainer(7) if known else None, dict[str, float]()
    for _ in range(2):
        with timer("step", raw):
            spend(telemetry, 3, "gen")
        telemetry.clock.advance(1)
    log(telemetry)
    assert telemetry.value(m.LOOP_DURATION) == 7
    assert telemetry.value(m.SAMPLE_DURATION) == 6
    assert telemetry.value(m.RESTARTS, **{"rl.restart.reason": "unknown"}) == 0
    assert iterations(telemetry) == [7 if made is not None else 1]


def test_iterations_that_are_logged_together_are_closed_one_by_one(telemetry: Telemetry) -> None:
    """fully-async logs once for several."""
    for _ in range(3):
        with timer("step"):
            spend(telemetry, 2, "update_actor")
        telemetry.clock.advance(1)
    log(telemetry)
    (loops,) = telemetry.points(m.LOOP_DURATION)
    assert (loops.count, loops.sum) == (3, 6)


def test_the_recipes_word_for_the_wait_is_the_wait(telemetry: Telemetry) -> None:
    with timer("step"):
        spend(telemetry, 5, "wait_prev_gen")
    log(telemetry)
    assert telemetry.value(m.SAMPLE_DURATION, **{"rl.sample.kind": "wait"}) == 5


def test_the_end_of_the_rollouts_is_neither_a_failure_nor_an_iteration(telemetry: Telemetry) -> None:
    class TrainingStopException(Exception):
        pass

    with pytest.raises(TrainingStopException), timer("step"), timer("gen"):
        raise TrainingStopException
    assert telemetry.value(m.PHASE_FAILURES, **of("loop")) == 0
    assert telemetry.value(m.PHASE_FAILURES, **of("sample")) == 0
    assert telemetry.points(m.LOOP_DURATION) == telemetry.points(m.LOOP_AGE) == []
    assert telemetry.spans("rl.loop") == []


def test_what_fails_is_closed_with_its_error(telemetry: Telemetry) -> None:
    with pytest.raises(ZeroDivisionError), timer("step"), timer("update_actor"):
        telemetry.clock.advance(2)
        1 / 0  # noqa: B018
    failed = {"error.type": "ZeroDivisionError"}
    assert telemetry.value(m.TRAIN_DURATION, **failed) == telemetry.value(m.LOOP_DURATION, **failed) == 2


def test_a_step_that_hangs_shows_which_phase_and_since_when(telemetry: Telemetry) -> None:
    hung = timer("step"), timer("gen")
    for one in hung:
        one.__enter__()
    telemetry.clock.advance(3600)
    assert telemetry.value(m.LOOP_AGE) == 3600
    assert telemetry.value(m.PHASE_AGE, **of("sample")) == 3600
    for one in reversed(hung):
        one.__exit__(None, None, None)


def test_a_validation_after_the_step_is_a_phase_of_no_loop(telemetry: Telemetry) -> None:
    with timer("step"):
        telemetry.clock.advance(5)
    spend(telemetry, 7, "testing")
    log(telemetry)
    assert telemetry.value(m.LOOP_DURATION) == 5
    assert telemetry.value(m.PHASE_DURATION, **of("evaluate")) == 7
    (validation,) = telemetry.spans("rl.phase")
    assert not validation.parent_id


def test_rollouts_for_the_next_iteration_go_on_while_this_one_ends(telemetry: Telemetry) -> None:
    """One-step-off makes them in a task of its own."""

    async def generate() -> None:
        with timer("generate_async"):
            await asyncio.sleep(0)
            telemetry.clock.advance(4)

    async def fit() -> None:
        with timer("step"):
            rollouts = asyncio.create_task(generate())
            await asyncio.sleep(0)
            telemetry.clock.advance(1)
        log(telemetry)
        await rollouts

    asyncio.run(fit())
    assert telemetry.value(m.LOOP_DURATION) == 1
    assert telemetry.value(m.SAMPLE_DURATION, **{"rl.sample.kind": "generate"}) == 5


def test_validation_values_are_scores_and_nothing_else(telemetry: Telemetry) -> None:
    tracking().log(data={"val-core/openai/gsm8k/reward/mean@1": 0.61, "val-aux/x/y/std@4": 0.1}, step=0)
    (score,) = telemetry.points(m.EVALUATION_SCORE)
    assert (score.attributes["rl.evaluation.name"], score.value) == ("openai/gsm8k/reward/mean@1", 0.61)
    assert telemetry.points(m.ENVIRONMENT_REWARD_MEAN) == []
    assert telemetry.points(m.LOOP_DURATION) == []


def test_the_rollouters_values_close_no_iteration(telemetry: Telemetry) -> None:
    with timer("step"):
        telemetry.clock.advance(1)
    tracking().log(data={"fully_async/rollouter/idle_ratio": 0.2}, step=3)
    assert telemetry.points(m.LOOP_DURATION) == []


def test_the_score_is_the_reward_as_the_environment_gave_it(telemetry: Telemetry) -> None:
    logged({"critic/score/mean": 0.5, "critic/rewards/mean": 0.43})
    assert telemetry.value(m.ENVIRONMENT_REWARD_MEAN) == 0.5


def test_rollouts_that_were_all_aborted_are_a_finding_and_no_nan(telemetry: Telemetry) -> None:
    nan = math.nan
    logged({"response/aborted_ratio": 1.0, "critic/score/mean": nan, "num_turns/mean": nan, "actor/pg_loss": 0.0})
    assert telemetry.value(m.FINDINGS, **{"rl.finding.name": "all_samples_aborted"}) == 1
    assert telemetry.points(m.ENVIRONMENT_REWARD_MEAN) == []
    assert sum(float(point.value or 0) for point in telemetry.points(m.TRAIN_NONFINITE)) == 0
    assert telemetry.value(m.SAMPLE_ABORTED_RATIO) == 1


def test_a_loss_that_is_nan_is_counted(telemetry: Telemetry) -> None:
    logged({"actor/pg_loss": math.nan})
    lost = {"rl.value.name": "rl.train.loss", "rl.value.kind": "nan", "rl.loss.type": "policy"}
    assert telemetry.value(m.TRAIN_NONFINITE, **lost) == 1


@pytest.mark.parametrize(("told", "expected"), [(0.382, 0.382), (0.0, None), (math.nan, None)])
def test_verls_mfu_is_a_share_and_0_is_unknown(telemetry: Telemetry, told: float, expected: float | None) -> None:
    logged({"perf/mfu/actor": told})
    assert telemetry.value(m.TRAIN_MFU) == expected


def test_the_configuration_says_who_the_run_is(telemetry: Telemetry) -> None:
    logged({})
    (loop,) = telemetry.points(m.LOOP_DURATION)
    assert loop.attributes["rl.algorithm"] == "PPO"
    assert loop.attributes["rl.model.name"] == "Qwen/Qwen2.5-0.5B"
    assert loop.attributes["rl.environment.name"] == "math"


@pytest.mark.parametrize(
    ("more", "gpus", "gpus_of"),
    [
        ({}, 24, {"train": 16, "sample": 8}),
        ({"actor_rollout_ref": {"rollout": {"nnodes": 0, "n_gpus_per_node": 8}}}, 16, {}),
        (
            {
                "actor_rollout_ref": {"rollout": {"nnodes": 0}},
                "reward": {
                    "reward_model": {
                        "enable": True,
                        "enable_resource_pool": True,
                        "nnodes": 1,
                        "n_gpus_per_node": 4,
                    }
                },
            },
            20,
            {"train": 16, "sample": 16},
        ),
        ({"trainer": {}}, None, {}),
    ],
)
def test_the_configuration_says_which_gpus_there_are(
    telemetry: Telemetry, more: dict[str, Any], gpus: int | None, gpus_of: dict[str, int]
) -> None:
    tracking({**CONFIG, **more})
    hardware = telemetry.session.recorder.hardware
    assert (hardware.gpus, hardware.gpus_of) == (gpus, gpus_of)


def test_a_setting_that_refers_to_nothing_is_unknown(telemetry: Telemetry) -> None:
    from omegaconf import OmegaConf

    settings = OmegaConf.create({**CONFIG, "algorithm": {"adv_estimator": "${not.there}"}})
    run = tracking(settings)
    with timer("step"):
        pass
    run.log(data={"timing_s/step": 1.0}, step=1)
    (loop,) = telemetry.points(m.LOOP_DURATION)
    assert "rl.algorithm" not in loop.attributes
    assert loop.attributes["rl.environment.name"] == "math"


def test_a_checkpoint_in_a_bucket_says_so(telemetry: Telemetry) -> None:
    tracking()
    spend(telemetry, 3, "save_checkpoint")
    assert telemetry.value(m.CHECKPOINT_DURATION, **{"rl.checkpoint.tier": "object_storage"}) == 3
    telemetry.clock.advance(10)
    assert telemetry.value(m.CHECKPOINT_AGE, **{"rl.checkpoint.tier": "object_storage"}) == 10


def test_weights_are_timed_in_all_ways_that_verl_moves_them(telemetry: Telemetry) -> None:
    """Its method looks at who calls it, and is a coroutine or not."""
    from verl.checkpoint_engine.base import CheckpointEngineManager

    class Learner:
        def update_weights(self, **settings: Any) -> list[Any]:
            telemetry.clock.advance(2)
            return []

    manager = object.__new__(CheckpointEngineManager)
    manager.backend, manager.actor_wg = "naive", Learner()

    async def awaited() -> Any:
        return await manager.update_weights(global_steps=3)

    def plainly() -> Any:
        return manager.update_weights(3)

    async def called() -> Any:
        return plainly()

    assert plainly() == {}
    assert asyncio.run(awaited()) == {}
    assert asyncio.run(called()) == {}
    (transfers,) = telemetry.points(m.SYNC_DURATION)
    assert (transfers.count, transfers.sum) == (3, 6)
