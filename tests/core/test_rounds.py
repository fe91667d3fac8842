"""Which rounds are an iteration together, by a clock that is told."""

from collections.abc import Callable

import pytest

from rlotel import context
from rlotel.integrations.rounds import Counts, Rounds
from rlotel.integrations.stable_baselines3.tables import EVALUATION, ROLLOUT, UPDATE
from rlotel.integrations.tables import Timed
from rlotel.patching import Call
from rlotel.testing import Telemetry


class Model:
    """Rounds of given lengths."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry
        self.steps = 0
        self.rounds = Rounds(telemetry.session.recorder, self.counts)

    def counts(self, timed: Timed) -> Counts:
        if timed is not ROLLOUT:
            return {}
        steps, self.steps = self.steps, 0
        return {"steps": steps}

    def round(self, sample: float, train: float, inside: Callable[[], None] = lambda: None) -> None:
        self.rounds.next()
        self.rounds.begin(ROLLOUT)
        self.telemetry.clock.advance(sample / 2)
        inside()
        self.telemetry.clock.advance(sample / 2)
        self.steps += 1
        self.rounds.end()
        self.rounds.begin(UPDATE)
        self.telemetry.clock.advance(train)
        self.rounds.end()

    def evaluate(self, seconds: float) -> None:
        call = Call(None, (), {}, None)
        around = self.rounds.apart(EVALUATION)
        around["before"](call)
        self.telemetry.clock.advance(seconds)
        around["after"](call)

    def spans(self, name: str) -> list[float]:
        return [(span.end_ns - span.start_ns) / 1e9 for span in self.telemetry.spans(name)]


@pytest.fixture
def model(telemetry: Telemetry) -> Model:
    return Model(telemetry)


def test_long_rounds_are_an_iteration_each(model: Model) -> None:
    model.rounds.start(tiny=False)
    for _ in range(3):
        model.round(0.2, 0.3)
    model.rounds.close()
    assert model.spans("rl.loop") == pytest.approx([0.5] * 3)
    assert model.spans("rl.sample") == pytest.approx([0.2] * 3)


def test_tiny_rounds_are_gathered_until_a_second_has_passed(model: Model) -> None:
    model.rounds.start(tiny=True)
    for _ in range(250):
        model.round(0.006, 0.002)
    model.rounds.close()
    assert model.spans("rl.loop") == pytest.approx([1.0, 1.0])
    assert model.spans("rl.sample") == pytest.approx([0.75, 0.75])
    assert model.spans("rl.train") == pytest.approx([0.25, 0.25])
    assert model.telemetry.value("rl.sample.steps") == 250
    assert [span.attributes["rl.loop.iteration"] for span in model.telemetry.spans("rl.loop")] == [1, 126]


def test_what_turns_out_tiny_is_gathered_from_then_on(model: Model) -> None:
    model.rounds.start(tiny=False)
    for _ in range(250):
        model.round(0.006, 0.002)
    model.rounds.close()
    assert model.spans("rl.loop") == pytest.approx([1.0, 1.0])
    assert len(model.spans("rl.sample")) == 3
    assert model.telemetry.value("rl.sample.duration") == pytest.approx(1.5)


def test_a_round_that_takes_long_ends_the_iteration_and_those_after_it_are_one_each(model: Model) -> None:
    model.rounds.start(tiny=True)
    for seconds in (0.01, 0.01, 2.0, 2.0, 2.0):
        model.round(seconds, 0.0)
    model.rounds.close()
    assert model.spans("rl.loop") == pytest.approx([2.02, 2.0, 2.0])


@pytest.mark.parametrize("tiny", [False, True])
def test_an_evaluation_takes_no_time_from_a_rollout(model: Model, tiny: bool) -> None:
    model.rounds.start(tiny=tiny)
    model.round(0.2, 0.1)
    model.round(0.2, 0.1, lambda: model.evaluate(5.0))
    model.rounds.close()
    assert model.telemetry.value("rl.sample.duration") == pytest.approx(0.4)
    assert model.telemetry.value("rl.phase.duration") == pytest.approx(5.0)
    shares = {str(p.attributes["rl.phase.name"]): p.value for p in model.telemetry.points("rl.phase.time")}
    assert {name: shares[name] for name in ("sample", "train", "evaluate", "idle")} == {
        "sample": pytest.approx(0.4),
        "train": pytest.approx(0.2),
        "evaluate": pytest.approx(5.0),
        "idle": pytest.approx(0.0, abs=1e-6),
    }


def test_time_between_rounds_is_idle(model: Model) -> None:
    model.rounds.start(tiny=True)
    for _ in range(10):
        model.round(0.05, 0.03)
        model.telemetry.clock.advance(0.02)
    model.rounds.close()
    assert model.telemetry.value("rl.loop.idle.ratio") == pytest.approx(0.2)


def test_a_failure_while_gathering_is_of_what_failed(model: Model) -> None:
    model.rounds.start(tiny=True)
    model.round(0.01, 0.01)
    model.rounds.next()
    model.rounds.begin(ROLLOUT)
    error = ValueError("a secret")
    model.rounds.end(error)
    model.rounds.close(error)
    assert [span.attributes.get("error.type") for span in model.telemetry.spans("rl.sample")] == ["ValueError"]
    assert [span.attributes.get("error.type") for span in model.telemetry.spans("rl.train")] == [None]
    assert model.telemetry.value("rl.loop.duration", **{"error.type": "ValueError"}) == pytest.approx(0.02)


@pytest.mark.parametrize("tiny", [False, True])
def test_what_cannot_be_counted_ends_all_the_same(telemetry: Telemetry, tiny: bool) -> None:
    def counts(timed: Timed) -> Counts:
        raise LookupError(timed.phase)

    rounds = Rounds(telemetry.session.recorder, counts)
    rounds.start(tiny=tiny)
    rounds.next()
    rounds.begin(ROLLOUT)
    with pytest.raises(LookupError):
        rounds.close()
    assert context.current() is None
    assert [span.name for span in telemetry.spans()] == ["rl.sample", "rl.loop"]
