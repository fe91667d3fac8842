"""Iterations: when one begins and ends, however often NeMo RL enters it and however it ends."""

import asyncio
import sys
import threading
from typing import Any

import pytest

from rlotel import context
from rlotel.testing import captured

from .conftest import Nemo


def step(nemo: Nemo, timer: Any, number: int, seconds: float = 1.0) -> None:
    """An iteration that is nothing but an update."""
    with timer.time("total_step_time"), timer.time("policy_training"):
        nemo.pass_(seconds)
    nemo.logger.log_metrics({"total_step_time": seconds}, number, "timing/train")
    timer.reset()


def steps(nemo: Nemo, timer: Any, *numbers: int) -> None:
    for number in numbers:
        step(nemo, timer, number)


def iterations(nemo: Nemo) -> list[Any]:
    return [span.attributes["rl.loop.iteration"] for span in nemo.telemetry.spans("rl.loop")]


def test_sampling_again_is_the_same_iteration(nemo: Nemo) -> None:
    """DAPO goes on until enough groups have different rewards, and then logs once."""

    def body() -> None:
        timer = nemo.timer()
        for _ in range(3):
            with timer.time("total_step_time"):
                with timer.time("generation"):
                    nemo.pass_(10)
                with timer.time("reward_calculation"):
                    nemo.pass_(1)
        with timer.time("total_step_time"), timer.time("policy_training"):
            nemo.pass_(5)
        nemo.pass_(2)  # results are printed; that is no part of it
        nemo.logger.log_metrics({}, 1, "timing/train")

    nemo.train(body)
    durations = {
        name: [(point.count, point.sum) for point in nemo.telemetry.points(f"rl.{name}.duration")]
        for name in ("loop", "sample", "phase", "train")
    }
    assert durations == {"loop": [(1, 38)], "sample": [(1, 30)], "phase": [(1, 3)], "train": [(1, 5)]}
    assert iterations(nemo) == [1]


def test_a_starving_trainer_has_one_iteration(nemo: Nemo) -> None:
    """While the buffer is empty the timer is entered hundreds of times, with nothing done: one long wait."""
    ages: list[Any] = []

    def body() -> None:
        timer = nemo.timer()
        for _ in range(300):
            with timer.time("total_step_time"), timer.time("exposed_generation"):
                nemo.pass_(0.25)
                with timer.time("idle/buffer_starvation"):
                    nemo.pass_(0.5)
            ages.append(nemo.telemetry.value("rl.phase.age", **{"rl.phase.name": "sample"}))
        with timer.time("total_step_time"), timer.time("policy_training"):
            nemo.pass_(75)
        nemo.logger.log_metrics({}, 8, "timing/train")

    nemo.train(body, "grpo:async_grpo_train", grpo_save_state={"current_step": 7})
    (wait,) = nemo.telemetry.points("rl.sample.duration")
    assert (wait.attributes["rl.sample.kind"], wait.count, wait.sum) == ("wait", 1, 225)
    (loop,) = nemo.telemetry.points("rl.loop.duration")
    assert (loop.count, loop.sum) == (1, 300)
    assert nemo.telemetry.value("rl.loop.idle.ratio") == 0.75
    assert iterations(nemo) == [8]
    assert len(nemo.telemetry.spans("rl.sample")) == 1
    assert ages == [0.75 * (number + 1) for number in range(300)]


def test_a_failed_iteration_says_what_failed_and_where(nemo: Nemo) -> None:
    def body() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"), timer.time("generation"):
            nemo.pass_(3)
            raise TimeoutError("a prompt that must not be exported")

    with pytest.raises(TimeoutError, match="a prompt"):
        nemo.train(body)
    failed = {
        (point.name, point.attributes.get("rl.phase.name"), point.attributes["error.type"], point.sum)
        for name in ("rl.loop.duration", "rl.sample.duration")
        for point in nemo.telemetry.points(name)
    }
    assert failed == {
        ("rl.loop.duration", None, "TimeoutError", 3),
        ("rl.sample.duration", None, "TimeoutError", 3),
    }
    assert {span.name: span.status_code for span in nemo.telemetry.spans()} == {
        "rl.loop": "error",
        "rl.sample": "error",
    }
    assert nemo.telemetry.value("rl.phase.failures", **{"rl.phase.name": "loop"}) == 1


def test_what_fails_after_the_timer_has_stopped_fails_the_iteration(nemo: Nemo) -> None:
    def body() -> None:
        with nemo.timer().time("total_step_time"):
            nemo.pass_(2)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        nemo.train(body)
    (loop,) = nemo.telemetry.points("rl.loop.duration")
    assert (loop.attributes["error.type"], loop.sum) == ("ConnectionError", 2)


def test_what_is_open_when_training_ends_is_closed(nemo: Nemo) -> None:
    """A timer that was started by hand, and an error before it is stopped."""

    def body() -> None:
        nemo.timer().start("init/total")
        nemo.pass_(60)
        raise RuntimeError("the data set is too small")

    with pytest.raises(RuntimeError, match="too small"):
        nemo.train(body, "grpo:async_grpo_train")
    (wait,) = nemo.telemetry.points("rl.sample.duration")
    assert (wait.attributes["error.type"], wait.sum) == ("RuntimeError", 60)
    assert nemo.telemetry.points("rl.phase.age") == []


def test_training_while_an_exception_is_handled_has_not_failed(nemo: Nemo) -> None:
    def body() -> None:
        step(nemo, nemo.timer(), 1)

    try:
        raise FileNotFoundError("no checkpoint to go on from")
    except FileNotFoundError:
        nemo.train(body)
    assert nemo.telemetry.value("rl.phase.failures", **{"rl.phase.name": "loop"}) == 0
    assert {span.status_code for span in nemo.telemetry.spans()} == {"unset"}


def test_an_iteration_that_is_never_logged_ends_with_the_training(nemo: Nemo) -> None:
    """The data ran out while DAPO was still sampling."""

    def body() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"), timer.time("generation"):
            nemo.pass_(4)
        nemo.pass_(100)

    nemo.train(body)
    (loop,) = nemo.telemetry.points("rl.loop.duration")
    assert (loop.count, loop.sum, nemo.telemetry.points("rl.loop.age")) == (1, 4, [])


def test_without_a_logger_an_iteration_ends_as_its_timer_is_reset(nemo: Nemo) -> None:
    def body() -> None:
        timer = nemo.timer()
        for _ in range(2):
            with timer.time("total_step_time"):
                nemo.pass_(1)
            timer.reset("data_processing")
            timer.reset()

    nemo.train(body)
    (loop,) = nemo.telemetry.points("rl.loop.duration")
    assert (loop.count, loop.sum) == (2, 2)


@pytest.mark.parametrize(
    ("target", "state", "first"),
    [
        ("grpo:grpo_train", {"grpo_save_state": {"total_steps": 40, "current_step": 4}}, 41),
        ("grpo:async_grpo_train", {"grpo_save_state": {"current_step": 40}}, 41),
        ("sft:sft_train", {"sft_save_state": {"total_steps": 40}}, 41),
        ("distillation:distillation_train", {"distillation_save_state": {"total_steps": 40}}, 41),
        ("dpo:dpo_train", {"dpo_save_state": {}}, 1),
        ("rm:rm_train", {}, 1),
    ],
)
def test_a_resumed_run_goes_on_counting(nemo: Nemo, target: str, state: dict[str, Any], first: int) -> None:
    timer = nemo.timer()
    nemo.train(lambda: steps(nemo, timer, first, first + 1), target, **state)
    assert iterations(nemo) == [first, first + 1]


def test_going_back_after_a_failure_is_a_restart(nemo: Nemo) -> None:
    """Steps 1, 2, 3, then from the checkpoint of 1: 2, 3, 4."""
    timer = nemo.timer()
    nemo.train(lambda: steps(nemo, timer, 1, 2, 3))
    nemo.train(lambda: steps(nemo, timer, 2, 3, 4), grpo_save_state={"total_steps": 1})
    assert iterations(nemo) == [1, 2, 3, 2, 3, 4]
    assert nemo.telemetry.value("rl.restarts", **{"rl.restart.reason": "unknown"}) == 1
    assert len(nemo.telemetry.capture().traces()) == 6


def test_a_run_that_hangs_shows_in_what(nemo: Nemo) -> None:
    seen: dict[str, Any] = {}

    def body() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"):
            with timer.time("data_processing"):
                nemo.pass_(5)
            with timer.time("generation"):
                nemo.pass_(3600)
                seen["loop"] = nemo.telemetry.value("rl.loop.age")
                seen["phases"] = {
                    point.attributes["rl.phase.name"]: point.value
                    for point in nemo.telemetry.points("rl.phase.age")
                }
                seen["progress"] = nemo.telemetry.value("rl.progress.age")

    nemo.train(body)
    assert seen == {"loop": 3605, "phases": {"sample": 3600}, "progress": 3605}


def test_waiting_for_the_first_rollouts_is_seen_before_there_is_an_iteration(nemo: Nemo) -> None:
    def body() -> None:
        timer = nemo.timer()
        timer.start("init/total")
        nemo.pass_(90)
        timer.stop("init/total")
        step(nemo, timer, 1)

    nemo.train(body, "grpo:async_grpo_train")
    (wait,) = nemo.telemetry.spans("rl.sample")
    assert (wait.parent_id, wait.attributes["rl.sample.kind"], wait.end_ns - wait.start_ns) == (None, "wait", 90e9)


def test_logs_that_are_no_iteration_do_not_end_one(nemo: Nemo) -> None:
    """GPUs are logged by a thread with steps of its own, rollouts before results, a watchdog when it likes."""

    def body() -> None:
        timer, log = nemo.timer(), nemo.logger.log_metrics
        with timer.time("total_step_time"):
            thread = threading.Thread(target=log, args=({"node.0.gpu.0.util": 50.0}, 17, "ray", "ray/ray_step"))
            thread.start()
            thread.join()
            log({"mean_gen_tokens_per_sample": 5.0}, 1, prefix="train")
            log({"rollout/idle_s": 3.0}, 0, prefix="")
            log({"setup_s": 3.0}, 0, prefix="timing/setup")
            log({"total_validation_time": 3.0}, 1, prefix="timing/validation")
            nemo.pass_(1)
        log({}, 1, prefix="performance")
        log({"total_step_time": 1.0}, 1, prefix="timing/train", step_finished=True)

    nemo.train(body)
    assert iterations(nemo) == [1]


def test_the_single_controller_trains_in_a_task_of_an_actor(nemo: Nemo) -> None:
    """There is no training function, and its own class cannot be watched."""
    sampler = nemo.module("algorithms.async_utils.staleness_sampler").BaseSampler()
    check = nemo.module("algorithms.single_controller_utils.config").validate_single_controller_config

    async def pump() -> None:
        check({"policy": {"model_name": "Qwen/Qwen3-8B"}, "grpo": {"use_dynamic_sampling": True}})
        sampler.set_dispatch_index(40)
        timer = nemo.timer()
        with timer.time("total_step_time"):
            with timer.time("exposed_generation"):
                await asyncio.sleep(0)
                nemo.pass_(2)
            with timer.time("policy_training"):
                await asyncio.to_thread(nemo.pass_, 3)
        nemo.logger.log_metrics({}, step=41, prefix="timing/train")
        timer.reset()

    asyncio.run(pump())
    (point,) = nemo.telemetry.points("rl.loop.duration")
    assert [point.attributes[f"rl.{key}"] for key in ("algorithm", "model.name")] == ["DAPO", "Qwen/Qwen3-8B"]
    assert [(span.name, span.attributes["rl.loop.iteration"]) for span in nemo.telemetry.spans()] == [
        ("rl.sample", 41),
        ("rl.train", 41),
        ("rl.loop", 41),
    ]


def test_what_was_imported_before_is_watched_too_and_put_back(standins: None) -> None:
    import importlib

    grpo = importlib.import_module("nemo_rl.algorithms.grpo")
    original = grpo.grpo_train
    script = type(sys)("a_launch_script")
    script.__dict__["grpo_train"] = original
    sys.modules["a_launch_script"] = script
    try:
        with captured(frameworks=("nemo_rl",)) as telemetry:
            nemo = Nemo(telemetry)
            nemo.script.run = lambda _name, _arguments: step(nemo, nemo.timer(), 41)
            script.__dict__["grpo_train"](*[None] * 10, {"total_steps": 40}, {})
            assert iterations(nemo) == [41]
        assert script.__dict__["grpo_train"] is original
        assert grpo.grpo_train is original
    finally:
        del sys.modules["a_launch_script"]


def test_nothing_of_an_iteration_goes_on_when_nothing_is_watched_any_more(nemo: Nemo) -> None:
    timer = nemo.timer()

    def body() -> None:
        timer.start("total_step_time")
        timer.start("policy_training")
        nemo.telemetry.session.patches.undo()
        assert context.current() is None
        timer.stop("policy_training")
        timer.stop("total_step_time")

    nemo.train(body)
    assert nemo.telemetry.spans() == []
    assert nemo.telemetry.points("rl.loop.age") == nemo.telemetry.points("rl.phase.age") == []
