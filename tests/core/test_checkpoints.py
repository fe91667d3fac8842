"""Checkpoints: how long they take, how old they are, and what a restart would lose."""

import contextvars

import pytest

import rlotel
from rlotel.capture import Point
from rlotel.testing import Telemetry


def _own(point: Point) -> dict[str, object]:
    """A point's attributes without those that every point has."""
    return {name: value for name, value in point.attributes.items() if name not in ("rl.run.id", "rl.system")}


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
    assert telemetry.value("rl.checkpoint.age") == 5  # since the start: there is none to come back to
    assert telemetry.points("rl.checkpoint.step") == []
    done = {tuple(sorted(_own(p).items())): p.value for p in telemetry.points("rl.checkpoint.operations")}
    assert done == {
        (("error.type", "OSError"), ("rl.checkpoint.operation", "save"), ("rl.checkpoint.tier", "local_disk")): 1,
        (("rl.checkpoint.operation", "restore"), ("rl.checkpoint.tier", "local_disk")): 1,
    }
    assert telemetry.value("rl.phase.failures", **{"rl.phase.name": "checkpoint"}) == 1


def test_a_save_that_hangs_is_seen_while_it_does(telemetry: Telemetry) -> None:
    saving = rlotel.checkpoint("save", tier="object_storage", blocking=False)
    contextvars.copy_context().run(saving.__enter__)
    telemetry.clock.advance(7200)
    assert telemetry.value("rl.phase.age", **{"rl.phase.name": "checkpoint"}) == 7200
    (hanging,) = telemetry.points("rl.checkpoint.in_progress")
    assert (_own(hanging), hanging.value) == (
        {"rl.checkpoint.operation": "save", "rl.checkpoint.tier": "object_storage"},
        7200,
    )
    assert telemetry.value("rl.checkpoint.age") == 7200


def test_nothing_is_said_of_checkpoints_where_none_are_made(telemetry: Telemetry) -> None:
    with rlotel.loop():
        telemetry.clock.advance(1)
    assert [p.name for p in telemetry.points() if p.name.startswith("rl.checkpoint.") and p.value] == []
    assert telemetry.points("rl.checkpoint.age") == []


def test_iterations_that_are_done_again_after_a_restore_are_counted(telemetry: Telemetry) -> None:
    for iteration in (1, 2, 3, 4, 5, 3, 4):
        with rlotel.loop(iteration=iteration):
            pass
    assert telemetry.value("rl.restarts", **{"rl.restart.reason": "unknown"}) == 1
    assert telemetry.value("rl.checkpoint.lost_steps") == 3


def test_an_iteration_that_failed_was_not_done_before(telemetry: Telemetry) -> None:
    for iteration in (1, 2):
        with rlotel.loop(iteration=iteration):
            pass
    with pytest.raises(RuntimeError), rlotel.loop(iteration=3):
        raise RuntimeError("down")
    with rlotel.loop(iteration=2):
        pass
    assert telemetry.value("rl.checkpoint.lost_steps") == 1
