"""What grows while nothing happens, checkpoints, and progress."""

import contextvars

import pytest

import rlotel
from rlotel.testing import Telemetry


def test_the_age_of_a_loop_grows_without_a_call_and_is_gone_with_it(telemetry: Telemetry) -> None:
    assert telemetry.points("rl.loop.age") == []
    with rlotel.loop():
        seen = []
        for seconds in (100, 1800):
            telemetry.clock.advance(seconds)
            seen.append(telemetry.value("rl.loop.age"))
        assert seen == [100, 1900]
    assert telemetry.points("rl.loop.age") == []


def test_a_slow_first_loop_says_how_long_it_takes(telemetry: Telemetry) -> None:
    with rlotel.loop(), rlotel.train():
        telemetry.clock.advance(395)
        assert telemetry.value("rl.phase.age", **{"rl.phase.name": "train"}) == 395
    with rlotel.loop():
        telemetry.clock.advance(34)
        assert telemetry.value("rl.loop.age") == 34


def test_the_age_of_a_phase_is_that_of_the_oldest_of_its_name(telemetry: Telemetry) -> None:
    with rlotel.sample():
        telemetry.clock.advance(5)
        with rlotel.reward(), rlotel.sample():
            telemetry.clock.advance(2)
            ages = {point.attributes["rl.phase.name"]: point.value for point in telemetry.points("rl.phase.age")}
    assert ages == {"sample": 7, "reward": 2}


def test_a_checkpoint_that_hangs_is_seen_by_its_name(telemetry: Telemetry) -> None:
    saving = rlotel.checkpoint("save", tier="object_storage", blocking=False)
    contextvars.copy_context().run(saving.__enter__)
    telemetry.clock.advance(7200)
    assert telemetry.value("rl.phase.age", **{"rl.phase.name": "checkpoint"}) == 7200
    assert telemetry.points("rl.checkpoint.age") == []


def test_progress_is_a_finished_loop_or_train_step(telemetry: Telemetry) -> None:
    def age() -> float | None:
        return telemetry.value("rl.progress.age")

    assert age() == 0
    telemetry.clock.advance(50)
    assert age() == 50
    with rlotel.loop():
        telemetry.clock.advance(10)
        assert age() == 60
        with rlotel.train() as train:
            telemetry.clock.advance(10)
            train.add(steps=1)
            assert age() == 0
            telemetry.clock.advance(3)
        assert age() == 0
        telemetry.clock.advance(4)
    assert age() == 0
    telemetry.clock.advance(1900)
    assert age() == 1900


def test_a_loop_that_fails_again_and_again_is_no_progress(telemetry: Telemetry) -> None:
    for _ in range(3):
        with pytest.raises(OSError, match="down"), rlotel.loop(), rlotel.train():
            telemetry.clock.advance(100)
            raise OSError("down")
    assert telemetry.value("rl.progress.age") == 300


def test_a_save_has_a_duration_a_size_a_step_and_an_age_that_grows(telemetry: Telemetry) -> None:
    where = {"rl.checkpoint.tier": "object_storage"}
    with rlotel.loop(), rlotel.checkpoint("save", tier="object_storage", step=40, bytes=8 * 2**30):
        telemetry.clock.advance(12)
    assert telemetry.value("rl.checkpoint.duration", **where) == 12
    (size,) = telemetry.points("rl.checkpoint.size", **where)
    assert (size.sum, size.unit) == (8589934592, "By")
    assert telemetry.value("rl.checkpoint.step", **where) == 40
    assert telemetry.value("rl.checkpoint.age", **where) == 0
    telemetry.clock.advance(7200)
    assert telemetry.value("rl.checkpoint.age", **where) == 7200


def test_the_step_of_the_last_checkpoint_stays_until_the_next(telemetry: Telemetry) -> None:
    with rlotel.checkpoint("save", tier="ram", step=40):
        pass
    for _ in range(10):
        with rlotel.loop():
            pass
    assert telemetry.value("rl.checkpoint.step") == 40
    with rlotel.checkpoint("save", tier="ram", step=41):
        pass
    assert telemetry.value("rl.checkpoint.step") == 41


def test_a_save_that_failed_is_not_durable_and_neither_is_a_restore(telemetry: Telemetry) -> None:
    with pytest.raises(OSError, match="full"), rlotel.checkpoint("save", tier="local_disk", step=7):
        telemetry.clock.advance(3)
        raise OSError("full")
    with rlotel.checkpoint("restore", tier="local_disk", step=6):
        telemetry.clock.advance(2)
    durations = {
        (p.attributes["rl.checkpoint.operation"], p.attributes.get("error.type")): p.sum
        for p in telemetry.points("rl.checkpoint.duration")
    }
    assert durations == {("save", "OSError"): 3, ("restore", None): 2}
    assert telemetry.points("rl.checkpoint.age") == telemetry.points("rl.checkpoint.step") == []
    assert telemetry.value("rl.phase.failures", **{"rl.phase.name": "checkpoint"}) == 1
