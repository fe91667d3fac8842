"""What is logged of a step becomes an iteration: its time, its phases, its counts."""

import logging
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlotel
from rlotel.adapters import Log, each, gauge, logger, milliseconds, seconds, total
from rlotel.capture import SpanRecord
from rlotel.testing import START_NS, Telemetry, captured

REWARD = "rl.environment.reward.mean"


def play(telemetry: Telemetry, log: Log, steps: Sequence[tuple[float, Mapping[str, Any], int | None]]) -> None:
    """Log each of (seconds since the one before, values, step), and end the last."""
    for passed, values, step in steps:
        telemetry.clock.advance(passed)
        log(values, step)
    log.finish()


def when(span: SpanRecord) -> tuple[str, float, float]:
    """A span's name, and its beginning and end in seconds of the test's clock."""
    return span.name, (span.start_ns - START_NS) / 1e9, (span.end_ns - START_NS) / 1e9


def iterations(telemetry: Telemetry) -> list[Any]:
    return [span.attributes["rl.loop.iteration"] for span in telemetry.spans("rl.loop")]


def test_an_iteration_lasts_from_one_log_to_the_next(telemetry: Telemetry) -> None:
    log = logger({"reward": REWARD}, system="mine")
    play(telemetry, log, [(5, {"reward": 0.1}, 1), (10, {"reward": 0.2}, 2), (20, {"reward": 0.3}, 3)])
    assert [when(span) for span in telemetry.spans()] == [("rl.loop", 5, 15), ("rl.loop", 15, 35)]
    assert iterations(telemetry) == [2, 3]
    (loops,) = telemetry.points("rl.loop.duration")
    assert (loops.count, loops.sum, loops.attributes["rl.system"]) == (2, 30.0, "mine")
    assert telemetry.value(REWARD) == 0.3


def test_an_iteration_lasts_as_long_as_is_logged_the_first_one_too(telemetry: Telemetry) -> None:
    log = logger({"time/step_ms": milliseconds("loop")})
    play(telemetry, log, [(10, {"time/step_ms": 4000}, 1), (10, {"time/step_ms": 9000}, 2)])
    assert [when(span) for span in telemetry.spans()] == [("rl.loop", 6, 10), ("rl.loop", 11, 20)]


def test_several_log_calls_of_one_step_are_one_iteration(telemetry: Telemetry) -> None:
    log = logger({"a": REWARD, "b": "rl.entropy", "n": each("rl.sample.samples")})
    play(
        telemetry,
        log,
        [
            (1, {"a": 1}, 1),
            (1, {"b": 1, "n": 3}, 1),
            (4, {"a": 2}, 2),
            (4, {"b": 2, "n": 5}, 2),
            (0, {"n": 4}, 2),  # the last word of a step counts
        ],
    )
    assert [when(span) for span in telemetry.spans()] == [("rl.loop", 2, 10)]
    assert telemetry.value("rl.sample.samples") == 7
    assert telemetry.value("rl.samples.rate") == 0.5


def test_without_steps_a_key_that_comes_again_begins_the_next_iteration(telemetry: Telemetry) -> None:
    log = logger({"a": REWARD, "b": "rl.entropy"})
    calls: list[dict[str, float]] = [{"a": 1}, {"b": 1}, {"a": 2}, {"b": 2}, {"a": 3, "b": 3}]
    play(telemetry, log, [(1, values, None) for values in calls])
    assert [when(span) for span in telemetry.spans()] == [("rl.loop", 2, 4), ("rl.loop", 4, 5)]
    assert iterations(telemetry) == [1, 2]


def test_the_step_may_be_one_of_the_values(telemetry: Telemetry) -> None:
    log = logger({"reward": REWARD}, step="trainer/global_step")
    play(telemetry, log, [(1, {"reward": 1, "trainer/global_step": step}, 0) for step in (10, 20, 30)])
    assert iterations(telemetry) == [20, 30]
    assert log.unmapped == []


def test_a_step_that_is_no_number_is_refused_and_the_values_are_not(telemetry: Telemetry) -> None:
    log = logger({"reward": REWARD})
    log({"reward": 1}, "first")  # type: ignore[arg-type]
    assert telemetry.value(REWARD) == 1
    assert telemetry.value("rlotel.values.refused", **{"rlotel.refusal.reason": "text"}) == 1


def test_a_step_that_goes_back_is_accepted_and_counted_as_a_restart(telemetry: Telemetry) -> None:
    log = logger({"reward": REWARD, "steps": each("rl.train.steps")})
    play(telemetry, log, [(1, {"reward": step, "steps": 4}, step) for step in (1, 2, 3, 2, 3, 4)])
    assert iterations(telemetry) == [2, 3, 2, 3, 4]
    assert telemetry.value("rl.restarts", **{"rl.restart.reason": "unknown"}) == 1
    assert telemetry.value("rl.train.steps") == 24
    assert len({span.trace_id for span in telemetry.spans("rl.loop")}) == 5


def test_keys_of_another_axis_neither_begin_iterations_nor_look_like_restarts(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    log = logger({"loss": "rl.train.loss", "reward": REWARD})
    steps: list[tuple[float, dict[str, float], int]] = []
    for i in range(4):
        steps += [(1, {"loss": i}, 1000 + 100 * i), (1, {"reward": 2 * i}, 10 + i)]
    play(telemetry, log, steps)
    assert iterations(telemetry) == [1100, 1200, 1300]
    assert telemetry.value("rl.restarts", **{"rl.restart.reason": "unknown"}) == 0
    assert telemetry.value(REWARD) == 6
    assert ["counted against different steps" in record.message for record in caplog.records] == [True]


def test_phases_follow_each_other_and_the_last_ends_at_the_log(telemetry: Telemetry) -> None:
    log = logger({"t/sample": seconds("sample"), "t/reward": seconds("reward"), "t/train": seconds("train")})
    # As loggers do, in an order that says nothing.
    values = {"t/train": 3, "t/sample": 10, "t/reward": 2}
    play(telemetry, log, [(20, {"t/train": 1}, 1), (20, values, 2)])
    (trace,) = [roots for roots in telemetry.capture().traces().values() if roots[0].span.name == "rl.loop"]
    assert when(trace[0].span) == ("rl.loop", 20, 40)
    assert [when(child.span) for child in trace[0].children] == [
        ("rl.sample", 25, 35),
        ("rl.reward", 35, 37),
        ("rl.train", 37, 40),
    ]
    assert telemetry.value("rl.loop.idle.ratio") == 0.25
    shares = {str(point.attributes["rl.phase.name"]): point.value for point in telemetry.points("rl.phase.time")}
    assert {name: share for name, share in shares.items() if share} == {
        "sample": 10,
        "reward": 2,
        "train": 3,
        "idle": 5,
    }


def test_a_phase_that_is_logged_earlier_ends_earlier(telemetry: Telemetry) -> None:
    log = logger({"t/sample": seconds("sample"), "t/train": seconds("train")})
    play(
        telemetry,
        log,
        [(1, {"t/sample": 1}, 1), (10, {"t/sample": 8}, 2), (5, {"t/train": 4}, 2)],
    )
    spans = {span.name: when(span)[1:] for span in telemetry.spans() if "rl.loop.iteration" in span.attributes}
    assert spans == {"rl.sample": (3, 11), "rl.train": (12, 16), "rl.loop": (1, 16)}


def test_phases_that_are_longer_than_their_iteration_overlapped(telemetry: Telemetry) -> None:
    log = logger({"t/sample": seconds("sample"), "t/train": seconds("train")})
    play(telemetry, log, [(10, {"t/train": 1}, 1), (10, {"t/sample": 9, "t/train": 6}, 2)])
    spans = {span.name: when(span)[1:] for span in telemetry.spans() if "rl.loop.iteration" in span.attributes}
    assert spans == {"rl.sample": (11, 20), "rl.train": (14, 20), "rl.loop": (10, 20)}


def test_a_phase_that_took_no_time_was_none(telemetry: Telemetry) -> None:
    log = logger({"t/eval": seconds("evaluate"), "reward": REWARD})
    play(telemetry, log, [(1, {"t/eval": 0, "reward": 1}, step) for step in range(3)])
    assert telemetry.points("rl.phase.duration") == []


@pytest.mark.parametrize("wrong", [math.nan, -1.0, True, "3 s", [1, 2]])
def test_a_duration_or_count_that_is_no_number_is_refused(telemetry: Telemetry, wrong: object) -> None:
    log = logger({"t": seconds("train"), "n": each("rl.train.steps"), "reward": REWARD})
    play(telemetry, log, [(1, {"reward": 1}, 1), (1, {"t": wrong, "n": wrong, "reward": 2}, 2)])
    assert telemetry.points("rl.train.duration") == []
    assert telemetry.value("rl.train.steps") == 0
    assert sum(point.value or 0 for point in telemetry.points("rlotel.values.refused")) == 2
    assert telemetry.value("rl.loop.duration") == 1


def test_values_that_are_no_numbers_are_treated_as_everywhere(telemetry: Telemetry) -> None:
    log = logger({"reward": REWARD, "loss": "rl.train.loss", "norm": "rl.grad_norm", "lr": "rl.learning_rate"})
    log({"reward": 1, "loss": 0.5, "norm": 2, "lr": 1e-5}, 1)
    log({"reward": None, "loss": math.nan, "norm": True, "lr": "1e-5"}, 2)
    assert telemetry.value(REWARD) == 1  # nothing was said of it
    assert telemetry.points("rl.train.loss") == telemetry.points("rl.grad_norm") == []
    assert telemetry.points("rl.learning_rate") == []
    found = {"rl.value.name": "rl.train.loss", "rl.loss.type": "total", "rl.value.kind": "nan"}
    assert telemetry.value("rl.train.nonfinite", **found) == 1
    refused = {
        str(point.attributes["rlotel.refusal.reason"]): point.value
        for point in telemetry.points("rlotel.values.refused")
        if point.value
    }
    assert refused == {"bool": 1, "text": 1}


def test_zero_may_say_that_a_value_is_not_known(telemetry: Telemetry) -> None:
    log = logger({"mfu": gauge("rl.train.mfu", scale=0.01, zero_is_unknown=True)})
    log({"mfu": 40.0}, 1)
    log({"mfu": 0.0}, 2)
    assert telemetry.value("rl.train.mfu") == 0.4


def test_numpy_values_are_numbers(telemetry: Telemetry) -> None:
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    log = logger({"reward": REWARD, "n": each("rl.sample.episodes")})
    play(telemetry, log, [(1, {"reward": numpy.float32(0.5), "n": numpy.int64(3)}, numpy.int64(1))])
    assert (telemetry.value(REWARD), telemetry.value("rl.sample.episodes")) == (0.5, 3)


def test_a_total_counts_what_came_and_a_drop_adds_nothing(telemetry: Telemetry) -> None:
    log = logger({"tokens": total("rl.train.tokens")})
    seen = []
    for step, value in enumerate([1000, 2500, 1500, 3000]):
        play(telemetry, log, [(1, {"tokens": value}, step)])
        seen.append(telemetry.value("rl.train.tokens"))
    assert seen == [0, 1500, 1500, 3000]


@given(values=st.lists(st.floats(0, 1e12), min_size=1, max_size=20))
def test_a_total_never_counts_down_and_adds_up_to_its_rises(values: list[float]) -> None:
    with captured() as telemetry:
        log = logger({"tokens": total("rl.train.tokens")})
        play(telemetry, log, [(1, {"tokens": value}, step) for step, value in enumerate(values)])
        rises = sum(max(0.0, after - before) for before, after in pairwise(values))
        assert telemetry.value("rl.train.tokens") == pytest.approx(rises)


def test_counts_are_told_on_the_span_of_their_phase_and_make_rates(telemetry: Telemetry) -> None:
    log = logger(
        {
            "t": seconds("sample"),
            "prompt": each("rl.sample.tokens", type="prompt"),
            "completion": each("rl.sample.tokens", type="completion"),
            "steps": each("rl.train.steps", role="actor"),
        }
    )
    values = {"t": 5, "prompt": 100, "completion": 900, "steps": 2}
    play(telemetry, log, [(10, values, 1), (10, values, 2)])
    assert telemetry.value("rl.tokens.rate") == 100
    assert [span.attributes["rl.sample.tokens"] for span in telemetry.spans("rl.sample")] == [1000, 1000]
    assert telemetry.value("rl.train.steps", **{"rl.role": "actor"}) == 4


def test_evaluations_are_scores_and_never_enter_training(telemetry: Telemetry) -> None:
    log = logger({"reward": REWARD}, evaluation=("eval/", "val-core/"))
    play(
        telemetry,
        log,
        [
            (1, {"reward": 0.5, "eval/reward": 0.9, "val-core/gsm8k/acc": 0.7}, 1),
            (1, {"eval/reward": 0.8}, 2),  # alone, it is no iteration
            (1, {"reward": 0.6}, 3),
        ],
    )
    assert telemetry.value(REWARD) == 0.6
    scores = {p.attributes["rl.evaluation.name"]: p.value for p in telemetry.points("rl.evaluation.score")}
    assert scores == {"reward": 0.8, "gsm8k/acc": 0.7}
    assert iterations(telemetry) == [3]


def test_what_is_nested_has_keys_with_dots(telemetry: Telemetry) -> None:
    log = logger({"env_runners.episode_return_mean": REWARD})
    log({"env_runners": {"episode_return_mean": 3.0, "num": {"episodes": 2}}, "lr": 1}, 1)
    assert telemetry.value(REWARD) == 3
    assert log.unmapped == ["env_runners.num.episodes", "lr"]


def test_a_checkpoint_that_was_saved_is_the_one_to_come_back_to(telemetry: Telemetry) -> None:
    log = logger({"t/save": seconds("checkpoint", operation="save", tier="local_disk"), "reward": REWARD})
    play(telemetry, log, [(60, {"reward": 1}, 7), (60, {"reward": 1, "t/save": 12}, 8)])
    assert telemetry.value("rl.checkpoint.duration", **{"rl.checkpoint.blocking": True}) == 12
    assert telemetry.value("rl.checkpoint.step", **{"rl.checkpoint.tier": "local_disk"}) == 8


def test_keys_that_are_not_in_the_table_are_listed_and_said_once(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rlotel")
    log = logger({"reward": REWARD})
    play(telemetry, log, [(1, {"reward": 1, "lr": 1e-3, "text": "hello"}, step) for step in range(9)])
    assert (log.unmapped, log.missing) == (["lr", "text"], [])
    assert [record.message for record in caplog.records] == [
        "rlotel: the trainer also logs what its table does not have: lr, text (said once)"
    ]


def test_a_trainer_that_logs_none_of_the_keys_is_said_to(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    log = logger({"rewards": REWARD})
    play(telemetry, log, [(1, {"train/reward": 1}, step) for step in range(200)])
    assert [record.message for record in caplog.records] == [
        "rlotel: the trainer has logged no key of its table; it logs train/reward"
    ]
    assert telemetry.spans() == []


def test_a_key_that_never_came_is_said_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    with captured() as telemetry:
        log = logger({"reward": REWARD, "train/los": "rl.train.loss"})
        play(telemetry, log, [(1, {"reward": 1, "train/loss": 1}, 1)])
    assert [record.message for record in caplog.records] == [
        "rlotel: the trainer never logged 'train/los', which its table has; 'train/loss' was"
    ]


def test_the_last_iteration_is_recorded_as_the_session_ends(telemetry: Telemetry) -> None:
    log = logger({"reward": REWARD, "t": seconds("train")})
    log({"reward": 1, "t": 0.5}, 1)
    telemetry.clock.advance(3)
    log({"reward": 2, "t": 2}, 2)
    rlotel.uninstrument()
    assert [when(span) for span in telemetry.spans("rl.loop")] == [("rl.loop", 0, 3)]
    log({"reward": 3, "t": 2}, 3)
    log.finish()
    assert len(telemetry.spans("rl.loop")) == 1


def test_another_rank_reports_its_time_and_nothing_that_all_ranks_count() -> None:
    with captured({"RANK": "1", "WORLD_SIZE": "2"}) as telemetry:
        log = logger({"reward": REWARD, "t": seconds("train"), "n": each("rl.train.steps")}, evaluation="eval/")
        play(telemetry, log, [(4, {"reward": 1, "t": 3, "n": 2, "eval/x": 1}, step) for step in (1, 2, 3)])
        (worker,) = telemetry.points("rl.worker.duration")
        assert (worker.attributes["rl.phase.name"], worker.sum) == ("train", 9)
        counted = ("rl.train.steps", REWARD, "rl.evaluation.score", "rl.loop.duration", "rl.train.duration")
        assert [point for name in counted for point in telemetry.points(name)] == []


def test_our_error_is_contained(telemetry: Telemetry) -> None:
    log = logger({"reward": REWARD})
    log(None)  # type: ignore[arg-type]
    log({"reward": 1}, 1)
    assert telemetry.value(REWARD) == 1
    assert [place for place, _ in telemetry.errors] == ["Log.__call__"]
    telemetry.errors.clear()


@pytest.mark.parametrize("seconds_", [5e9, 1e20, 1e300])
def test_a_duration_in_another_unit_is_left_out_alone(telemetry: Telemetry, seconds_: float) -> None:
    log = logger({"t": seconds("train"), "all": seconds("loop"), "n": each("rl.train.tokens")})
    telemetry.clock.advance(100)
    play(telemetry, log, [(10, {"t": 2, "all": 4, "n": 1}, 1), (10, {"t": seconds_, "all": seconds_, "n": 1}, 2)])
    assert [when(span) for span in telemetry.spans()] == [
        ("rl.train", 108, 110),
        ("rl.loop", 106, 110),
        ("rl.loop", 110, 120),
    ]
    assert telemetry.value("rl.train.tokens") == 2
    assert telemetry.value("rlotel.values.refused", **{"rlotel.refusal.reason": "overflow"}) == 2


def test_mappings_are_looked_through_only_so_far(telemetry: Telemetry) -> None:
    log = logger({"reward": REWARD, "a.b": "rl.entropy"})
    endless: dict[str, Any] = {"b": 1.0}
    endless["self"] = endless
    log({"a": endless, "reward": 0.5}, 1)
    assert (telemetry.value(REWARD), telemetry.value("rl.entropy")) == (0.5, 1.0)
