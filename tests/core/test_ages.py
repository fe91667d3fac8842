"""What grows while nothing happens, and progress."""

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
