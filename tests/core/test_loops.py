"""Loops and phases: what is recorded of them and which trace they belong to."""

import asyncio
import contextvars
from asyncio import CancelledError

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import rlotel
from rlotel.otlp_records import SpanRecord
from rlotel.testing import Telemetry, captured


def tree(telemetry: Telemetry) -> dict[str, str | None]:
    """Each span's name with its parent's; names must differ."""
    spans = telemetry.spans()
    names = {span.span_id: name(span) for span in spans}
    assert len(set(names.values())) == len(spans)
    return {name(span): names.get(span.parent_id or "") for span in spans}


def name(span: SpanRecord) -> str:
    return str(span.attributes.get("rl.phase.name", span.name))


def iteration(telemetry: Telemetry, number: int) -> None:
    with rlotel.loop(iteration=number):
        with rlotel.sample(batch_size=8) as s:
            telemetry.clock.advance(4)
            s.add(samples=8, episodes=8, prompt_tokens=100, completion_tokens=300)
        with rlotel.reward(sandbox="subprocess"):
            telemetry.clock.advance(1)
        with rlotel.train(batch_size=8) as t:
            telemetry.clock.advance(2)
            t.add(steps=2, tokens=400)
        with rlotel.sync(source="learner", destination="vllm") as y:
            telemetry.clock.advance(1)
            y.add(bytes=1000)


def test_one_iteration_is_one_trace_whose_root_is_the_loop(telemetry: Telemetry) -> None:
    iteration(telemetry, 1)
    iteration(telemetry, 2)
    traces = telemetry.capture().traces()
    assert len(traces) == 2
    for (root,), number in zip(traces.values(), (1, 2), strict=True):
        assert (root.span.name, root.span.parent_id) == ("rl.loop", None)
        assert root.span.attributes["rl.loop.iteration"] == number
        assert [child.span.name for child in root.children] == ["rl.sample", "rl.reward", "rl.train", "rl.sync"]
        assert {child.span.attributes["rl.loop.iteration"] for child in root.children} == {number}


def test_spans_carry_what_was_told(telemetry: Telemetry) -> None:
    iteration(telemetry, 5)
    told = {
        span.name: {k: v for k, v in span.attributes.items() if k != "rl.loop.iteration"}
        for span in telemetry.spans()
    }
    assert told == {
        "rl.loop": {},
        "rl.sample": {
            "rl.sample.kind": "generate",
            "rl.sample.batch_size": 8,
            "rl.sample.samples": 8,
            "rl.sample.episodes": 8,
            "rl.sample.tokens": 400,
        },
        "rl.reward": {"rl.reward.sandbox": "subprocess"},
        "rl.train": {"rl.train.batch_size": 8, "rl.train.steps": 2, "rl.train.tokens": 400},
        "rl.sync": {"rl.sync.source": "learner", "rl.sync.destination": "vllm", "rl.sync.bytes": 1000},
    }
    spans = {span.name: (span.end_ns - span.start_ns) / 1e9 for span in telemetry.spans()}
    assert spans == {"rl.sample": 4, "rl.reward": 1, "rl.train": 2, "rl.sync": 1, "rl.loop": 8}


def test_durations_are_in_seconds_and_observed_once_a_loop(telemetry: Telemetry) -> None:
    with rlotel.loop():
        telemetry.clock.advance(34.5)
    for _ in range(2):
        with rlotel.loop():
            for _ in range(3):
                with rlotel.reward():
                    telemetry.clock.advance(0.5)
    (loop,) = telemetry.points("rl.loop.duration")
    (reward,) = telemetry.points("rl.reward.duration")
    assert (loop.count, loop.sum, loop.unit) == (3, 37.5, "s")
    assert (reward.count, reward.sum, reward.unit) == (2, 3.0, "s")


def test_loops_are_counted_from_zero_unless_told(telemetry: Telemetry) -> None:
    for number in (None, None, 7, None):
        with rlotel.loop(iteration=number):
            pass
    assert [span.attributes["rl.loop.iteration"] for span in telemetry.spans()] == [0, 1, 7, 8]


def test_a_number_that_is_none_does_not_cost_the_loop(telemetry: Telemetry) -> None:
    for number in (float("nan"), "three", 2**80, True):
        with rlotel.loop(iteration=number):  # type: ignore[arg-type]
            pass
    assert [span.attributes["rl.loop.iteration"] for span in telemetry.spans()] == [0, 1, 2, 3]
    assert telemetry.value("rl.restarts", **{"rl.restart.reason": "unknown"}) == 0


def test_the_loop_is_a_root_that_links_to_a_span_of_the_host(telemetry: Telemetry) -> None:
    host = TracerProvider(shutdown_on_exit=False).get_tracer("host")
    with host.start_as_current_span("request") as outside, rlotel.loop():
        pass
    (loop,) = telemetry.spans("rl.loop")
    assert loop.parent_id is None
    context = outside.get_span_context()
    assert [(link.trace_id, link.span_id) for link in loop.links] == [
        (f"{context.trace_id:032x}", f"{context.span_id:016x}")
    ]
    assert loop.trace_id != f"{context.trace_id:032x}"


def test_a_span_of_the_host_inside_a_phase_is_the_phases_child(telemetry: Telemetry) -> None:
    with rlotel.loop(), rlotel.train():
        inside = trace.get_current_span().get_span_context()
    assert not trace.get_current_span().get_span_context().is_valid
    (train,) = telemetry.spans("rl.train")
    assert f"{inside.span_id:016x}" == train.span_id


def test_nested_phases_are_children_and_each_gets_its_exclusive_time(telemetry: Telemetry) -> None:
    with rlotel.loop(), rlotel.sample():
        telemetry.clock.advance(3)
        with rlotel.reward():
            telemetry.clock.advance(2)
    assert tree(telemetry) == {"rl.reward": "rl.sample", "rl.sample": "rl.loop", "rl.loop": None}
    assert telemetry.value("rl.sample.duration") == 5
    shares = {p.attributes["rl.phase.name"]: p.value for p in telemetry.points("rl.phase.time") if p.value}
    assert shares == {"sample": 3, "reward": 2}


def test_overlapping_phases_share_their_time(telemetry: Telemetry) -> None:
    sample, train = rlotel.sample(), rlotel.train()
    with rlotel.loop():
        one, two = contextvars.copy_context(), contextvars.copy_context()
        one.run(sample.__enter__)
        telemetry.clock.advance(2)
        two.run(train.__enter__)
        telemetry.clock.advance(4)
        one.run(sample.__exit__, None, None, None)
        telemetry.clock.advance(1)
        two.run(train.__exit__, None, None, None)
    assert (telemetry.value("rl.sample.duration"), telemetry.value("rl.train.duration")) == (6, 5)
    shares = {p.attributes["rl.phase.name"]: p.value for p in telemetry.points("rl.phase.time") if p.value}
    assert shares == {"sample": 4, "train": 3}
    assert tree(telemetry) == {"rl.sample": "rl.loop", "rl.train": "rl.loop", "rl.loop": None}


def test_waiting_is_idle(telemetry: Telemetry) -> None:
    with rlotel.loop():
        with rlotel.sample(kind="wait"):
            telemetry.clock.advance(6)
        with rlotel.train():
            telemetry.clock.advance(3)
        telemetry.clock.advance(1)
    assert telemetry.value("rl.loop.idle.ratio") == 0.7
    assert telemetry.value("rl.sample.duration", **{"rl.sample.kind": "wait"}) == 6
    assert telemetry.value("rl.phase.time", **{"rl.phase.name": "idle"}) == 7


def test_other_phases_are_told_apart_by_name(telemetry: Telemetry) -> None:
    with rlotel.loop():
        with rlotel.phase("data"):
            telemetry.clock.advance(1)
        with rlotel.phase("logprob", role="actor"):
            telemetry.clock.advance(2)
    assert telemetry.value("rl.phase.duration", **{"rl.phase.name": "data"}) == 1
    assert telemetry.value("rl.phase.duration", **{"rl.phase.name": "logprob", "rl.role": "actor"}) == 2
    assert [span.name for span in telemetry.spans()] == ["rl.phase", "rl.phase", "rl.loop"]


def test_a_phase_that_is_called_sample_is_one(telemetry: Telemetry) -> None:
    with rlotel.loop(), rlotel.phase("sample"):
        telemetry.clock.advance(1)
    assert telemetry.value("rl.sample.duration", **{"rl.sample.kind": "generate"}) == 1


def test_a_phase_outside_of_any_loop_is_observed_at_once(telemetry: Telemetry) -> None:
    with rlotel.sync():
        telemetry.clock.advance(3)
    with rlotel.loop():
        pass
    with rlotel.phase("setup"), rlotel.checkpoint("restore", tier="local_disk"):
        telemetry.clock.advance(2)
    assert telemetry.value("rl.sync.duration") == 3
    assert telemetry.value("rl.checkpoint.duration") == 2
    assert tree(telemetry) == {"rl.sync": None, "rl.loop": None, "rl.checkpoint": "setup", "setup": None}
    assert len({span.trace_id for span in telemetry.spans()}) == 3


def test_a_phase_that_outlives_its_loop_is_observed_whole(telemetry: Telemetry) -> None:
    save = rlotel.checkpoint("save", tier="object_storage", blocking=False)
    with rlotel.loop(iteration=1):
        apart = contextvars.copy_context()
        apart.run(save.__enter__)
        telemetry.clock.advance(2)
    assert telemetry.points("rl.checkpoint.duration") == []
    with rlotel.loop(iteration=2):
        telemetry.clock.advance(5)
        apart.run(save.__exit__, None, None, None)
    assert telemetry.value("rl.checkpoint.duration") == 7
    first = telemetry.spans("rl.loop")[0]
    (saved,) = telemetry.spans("rl.checkpoint")
    assert (saved.parent_id, saved.trace_id) == (first.span_id, first.trace_id)
    shares = {p.attributes["rl.phase.name"]: p.value for p in telemetry.points("rl.phase.time") if p.value}
    assert shares == {"checkpoint": 2, "idle": 5}


def test_a_loop_has_a_limited_number_of_spans_but_all_of_its_time(telemetry: Telemetry) -> None:
    with rlotel.loop():
        for _ in range(500):
            with rlotel.reward():
                telemetry.clock.advance(0.25)
    assert len(telemetry.spans("rl.reward")) == 128
    (point,) = telemetry.points("rl.reward.duration")
    assert (point.count, point.sum) == (1, 125)


def test_a_failed_phase_has_its_type_but_not_its_message(telemetry: Telemetry) -> None:
    error = ValueError("the prompt was: secret")
    with pytest.raises(ValueError) as raised, rlotel.loop(), rlotel.train():
        telemetry.clock.advance(1)
        raise error
    assert raised.value is error
    spans = telemetry.spans()
    assert [(span.name, span.status_code, span.attributes["error.type"]) for span in spans] == [
        ("rl.train", "error", "ValueError"),
        ("rl.loop", "error", "ValueError"),
    ]
    assert "secret" not in repr(spans)
    assert telemetry.value("rl.train.duration", **{"error.type": "ValueError"}) == 1
    failures = {p.attributes["rl.phase.name"]: p.value for p in telemetry.points("rl.phase.failures")}
    assert failures == {"loop": 1, "train": 1, "sample": 0, "reward": 0, "sync": 0, "checkpoint": 0}


def test_a_failure_that_is_caught_is_the_phases_alone(telemetry: Telemetry) -> None:
    with rlotel.loop():
        for attempt in range(2):
            try:
                with rlotel.reward():
                    telemetry.clock.advance(1)
                    if attempt == 0:
                        raise TimeoutError
            except TimeoutError:
                pass
    (reward,) = telemetry.points("rl.reward.duration")
    assert (reward.attributes["error.type"], reward.count, reward.sum) == ("TimeoutError", 1, 2)
    (loop,) = telemetry.points("rl.loop.duration")
    assert "error.type" not in loop.attributes


@pytest.mark.parametrize(
    ("raised", "kind"),
    [(SystemExit(0), None), (SystemExit(3), "SystemExit"), (KeyboardInterrupt(), None), (CancelledError(), None)],
)
def test_leaving_early_is_a_failure_unless_somebody_wants_it(
    telemetry: Telemetry, raised: BaseException, kind: str | None
) -> None:
    with pytest.raises(type(raised)) as seen, rlotel.loop():
        raise raised
    assert seen.value is raised
    (span,) = telemetry.spans("rl.loop")
    assert span.attributes.get("error.type") == kind


def test_an_iteration_that_goes_back_is_a_restart(telemetry: Telemetry) -> None:
    for number in (1, 2, 3, 2, 3, 4):
        with rlotel.loop(iteration=number), rlotel.train() as train:
            train.add(steps=1)
    assert telemetry.value("rl.restarts", **{"rl.restart.reason": "unknown"}) == 1
    assert telemetry.value("rl.train.steps") == 6
    assert len(telemetry.capture().traces()) == 6


def test_an_iteration_that_failed_and_begins_again_is_a_restart(telemetry: Telemetry) -> None:
    with pytest.raises(OSError, match="lost"), rlotel.loop(iteration=4):
        raise OSError("lost")
    with rlotel.loop(iteration=4):
        pass
    assert telemetry.value("rl.restarts", **{"rl.restart.reason": "unknown"}) == 1


def test_a_number_that_is_used_twice_is_no_restart_and_two_traces(telemetry: Telemetry) -> None:
    for _ in range(2):
        with rlotel.loop(iteration=4):
            pass
    assert telemetry.value("rl.restarts", **{"rl.restart.reason": "unknown"}) == 0
    assert len(telemetry.capture().traces()) == 2


def test_loops_may_overlap(telemetry: Telemetry) -> None:
    async def one(number: int, seconds: float) -> None:
        async with rlotel.loop(iteration=number), rlotel.sample():
            begun.append(number)
            while len(begun) < 2:
                await asyncio.sleep(0)
            telemetry.clock.advance(seconds)

    async def both() -> None:
        await asyncio.gather(one(2, 1), one(1, 2))

    begun: list[int] = []
    asyncio.run(both())
    assert telemetry.value("rl.restarts", **{"rl.restart.reason": "unknown"}) == 0
    traces = telemetry.capture().traces()
    assert len(traces) == 2
    assert all([child.span.name for child in root.children] == ["rl.sample"] for (root,) in traces.values())


def test_a_bracket_may_be_used_again_and_inside_itself(telemetry: Telemetry) -> None:
    scoring = rlotel.reward()
    with rlotel.loop():
        with scoring:
            telemetry.clock.advance(1)
            with scoring:
                telemetry.clock.advance(1)
        with scoring:
            telemetry.clock.advance(1)
    (point,) = telemetry.points("rl.reward.duration")
    assert (point.count, point.sum) == (1, 3)
    assert telemetry.points("rl.phase.age") == []


def test_a_phase_without_a_session_does_nothing() -> None:
    with rlotel.loop() as loop, rlotel.train() as train:
        loop.set(reward=1)
        train.add(steps=1)
    with captured() as telemetry:
        assert telemetry.spans() == []


def test_what_was_open_before_the_session_stays_out_of_it() -> None:
    with rlotel.loop(), rlotel.train(), captured() as telemetry:
        with rlotel.reward():
            telemetry.clock.advance(1)
        assert telemetry.value("rl.reward.duration") == 1


def test_what_is_still_open_as_the_session_ends_ends_quietly() -> None:
    with captured() as telemetry:
        loop = rlotel.loop()
        loop.__enter__()
    loop.__exit__(None, None, None)
    assert telemetry.errors == []
