"""Our own errors: contained, counted, said once, and raised only to the author of a test."""

import contextvars
import logging
from collections.abc import Callable

import pytest

import rlotel
from rlotel.errors import Faults
from rlotel.integrations.threads import connect
from rlotel.testing import Telemetry, captured


def errors_of(telemetry: Telemetry) -> list[tuple[str, str]]:
    """Take the contained errors, so that the test does not fail for them."""
    found = [(place, type(error).__name__) for place, error in telemetry.errors]
    telemetry.errors.clear()
    return found


def test_our_error_is_contained_counted_and_said_once(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        with rlotel.loop(), rlotel.train() as train:
            train.add(stepz=1)  # type: ignore[call-arg]
            train.add(steps=2)
    assert errors_of(telemetry) == [("Handle.add", "TypeError")] * 3
    assert telemetry.value("rlotel.errors", **{"rlotel.place": "Handle.add"}) == 3
    assert telemetry.value("rl.train.steps") == 6
    said = [record for record in caplog.records if "an error inside rlotel, in Handle.add" in record.message]
    assert len(said) == 1
    assert said[0].exc_info is not None


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda: rlotel.reward().__enter__().add(tokens=1), "reward does not count tokens; it counts flops"),
        (lambda: rlotel.loop().__enter__().add(steps=1), "a loop counts nothing itself"),
        (lambda: rlotel.train().__enter__().add(5), "positional"),  # type: ignore[call-arg]
        (lambda: rlotel.train().__enter__().set(rewards=5), "rewards"),  # type: ignore[call-arg]
    ],
)
def test_a_call_that_makes_no_sense_says_what_does(
    telemetry: Telemetry, use: Callable[[], None], said: str
) -> None:
    contextvars.copy_context().run(use)  # what it opens stays open
    ((_, error),) = telemetry.errors
    assert said in str(error)
    telemetry.errors.clear()


def test_a_call_that_makes_no_sense_is_contained_without_a_session_too() -> None:
    with rlotel.train() as train:
        train.add(stepz=1)  # type: ignore[call-arg]


def test_a_log_handler_that_raises_does_not_reach_training(telemetry: Telemetry) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError

    handler = Broken()
    logging.getLogger("rlotel").addHandler(handler)
    try:
        with rlotel.loop() as loop:
            loop.set(nonsense=1)  # type: ignore[call-arg]
            loop.set(entropy="text", grad_norm=0.5)  # type: ignore[arg-type]
            with rlotel.train() as train:
                train.add(tokens="text", steps=4)  # type: ignore[arg-type]
    finally:
        logging.getLogger("rlotel").removeHandler(handler)
    assert errors_of(telemetry) == [("Handle.set", "TypeError")]
    assert telemetry.value("rl.grad_norm") == 0.5
    assert telemetry.value("rl.train.steps") == 4


def test_an_identity_of_unknown_parts_is_contained(telemetry: Telemetry) -> None:
    telemetry.session.recorder.identify(colour="red")
    assert errors_of(telemetry) == [("Recorder.identify", "TypeError")]


def test_a_clock_that_fails_costs_telemetry_and_nothing_else(telemetry: Telemetry) -> None:
    def fail() -> float:
        raise OSError

    ran = []
    with rlotel.loop():
        pass
    telemetry.clock.monotonic = fail  # type: ignore[method-assign]
    with rlotel.loop(), rlotel.train() as train:
        train.add(steps=1)
        ran.append(1)
    del telemetry.clock.monotonic
    assert ran == [1]
    assert {place for place, _ in errors_of(telemetry)} == {"Recorder.open_loop", "Recorder.open_phase"}


def test_keyboard_interrupts_are_not_contained() -> None:
    with pytest.raises(KeyboardInterrupt), Faults().contain("here"):
        raise KeyboardInterrupt


def test_the_fixture_raises_what_was_contained_at_the_end_of_the_test() -> None:
    with (
        pytest.raises(AssertionError, match=r"an error inside rlotel, in Handle\.add"),
        captured(),
        rlotel.train() as train,
    ):
        train.add(stepz=1)  # type: ignore[call-arg]


def test_the_fixture_leaves_a_tests_own_failure_alone() -> None:
    with pytest.raises(ZeroDivisionError), captured():
        with rlotel.train() as train:
            train.add(stepz=1)  # type: ignore[call-arg]
        raise ZeroDivisionError


def test_the_fixture_wants_no_other_session(telemetry: Telemetry) -> None:
    with pytest.raises(RuntimeError, match="uninstrument"), captured():
        pass


def test_the_fixture_knows_no_unknown_setting() -> None:
    with pytest.raises(TypeError, match="colour"), captured(colour="red"):
        pass


def test_the_fixture_says_which_points_there_are_if_it_cannot_choose(telemetry: Telemetry) -> None:
    with pytest.raises(LookupError, match=r"rl\.phase\.time has 5 points"):
        telemetry.value("rl.phase.time")
    assert telemetry.value("rl.entropy") is None


def test_a_test_that_asks_for_a_metric_of_no_such_name_is_told(telemetry: Telemetry) -> None:
    with pytest.raises(LookupError, match=r"no metric rl\.train\.step; did you mean rl\.train\.steps"):
        telemetry.value("rl.train.step")
    with pytest.raises(LookupError, match=r"there is no metric zzz$"):
        telemetry.points("zzz")


def test_the_fixtures_clock_and_ids_are_the_same_in_every_run() -> None:
    def run() -> object:
        with captured() as telemetry:
            with rlotel.loop(iteration=1), rlotel.train():
                telemetry.clock.advance(1.5)
            return [(s.name, s.trace_id, s.span_id, s.start_ns, s.end_ns) for s in telemetry.spans()]

    assert run() == run()


def test_an_integration_that_fails_does_not_keep_the_session_from_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    assert connect.__module__ == "rlotel.integrations.threads"
    monkeypatch.setattr("rlotel.integrations.threads.connect", None)
    with captured(frameworks="threads") as telemetry:
        with rlotel.loop():
            pass
        assert errors_of(telemetry) == [("integration threads", "TypeError")]
        assert len(telemetry.spans()) == 1
