"""A phase that is paused and resumed: one observation and one span, as long as all of its stretches."""

from rlotel.phases import Phase
from rlotel.recorder import Recorder
from rlotel.testing import Telemetry


def stretch(telemetry: Telemetry, phase: Phase, seconds: float) -> None:
    """Some more of it."""
    recorder: Recorder = telemetry.session.recorder
    assert phase.loop is not None
    phase.loop.resume(phase, recorder.now())
    telemetry.clock.advance(seconds)
    phase.loop.pause(phase, recorder.now())


def test_a_phase_of_many_stretches_is_one_span_and_one_observation(telemetry: Telemetry) -> None:
    recorder = telemetry.session.recorder
    loop = recorder.open_loop(1)
    telemetry.clock.advance(1)
    phase = recorder.open_phase("train", inside=loop)
    telemetry.clock.advance(2)
    loop.pause(phase, recorder.now())
    for _ in range(3):
        telemetry.clock.advance(4)
        stretch(telemetry, phase, 0.5)
    loop.resume(phase, recorder.now())
    telemetry.clock.advance(0.5)
    recorder.close_phase(phase)
    recorder.close_loop(loop)
    train, whole = telemetry.spans()
    assert (train.name, whole.name) == ("rl.train", "rl.loop")
    assert (train.start_ns - whole.start_ns, train.end_ns - train.start_ns) == (1e9, 4e9)
    (point,) = telemetry.points("rl.train.duration")
    assert (point.count, point.sum) == (1, 4)
    shares = {p.attributes["rl.phase.name"]: p.value for p in telemetry.points("rl.phase.time") if p.value}
    assert shares == {"train": 4, "idle": 13}


def test_a_phase_that_is_paused_as_its_iteration_ends_is_observed(telemetry: Telemetry) -> None:
    recorder = telemetry.session.recorder
    loop = recorder.open_loop(1)
    phase = recorder.open_phase("sync", inside=loop)
    telemetry.clock.advance(2)
    loop.pause(phase, recorder.now())
    telemetry.clock.advance(1)
    recorder.close_loop(loop)
    assert telemetry.value("rl.sync.duration") == 2
