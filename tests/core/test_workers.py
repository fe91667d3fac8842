"""Work in another process: it joins the loop's trace, and is reported under a name of its own."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace

import rlotel
from rlotel import carrier, handover
from rlotel.carrier import Arrival
from rlotel.config import resolve
from rlotel.errors import SettingError
from rlotel.testing import Telemetry, captured

LAUNCHED = {handover.ATTEMPT: "one", handover.RUN_ID: "r1"}

Worker = Callable[..., AbstractContextManager[Telemetry]]


def carried(telemetry: Telemetry) -> dict[str, str]:
    recorder = telemetry.session.recorder
    identity = '{"rl.run.id": "r1", "rl.system": "verl", "rl.algorithm": "GRPO"}'
    found = carrier.outgoing(recorder.around(), identity)
    assert found is not None
    return found


def test_a_phase_in_a_worker_joins_the_trace_it_was_asked_for_in(telemetry: Telemetry) -> None:
    with rlotel.loop(iteration=3), rlotel.sample():
        sent = carried(telemetry)
    sample = telemetry.spans("rl.sample")[0]
    telemetry.session.close()
    with captured(LAUNCHED) as worker:
        with Arrival(sent), rlotel.phase("generate", role="actor"):
            worker.clock.advance(2)
            with rlotel.reward():
                worker.clock.advance(1)
        generate, reward = worker.spans("rl.phase")[0], worker.spans("rl.reward")[0]
        assert (generate.trace_id, generate.parent_id) == (sample.trace_id, sample.span_id)
        assert (reward.trace_id, reward.parent_id) == (sample.trace_id, generate.span_id)
        assert trace.get_current_span().get_span_context().is_valid is False
        seconds = {
            (point.attributes["rl.phase.name"], point.attributes.get("rl.role")): point.sum
            for point in worker.points("rl.worker.duration")
        }
        assert seconds == {("generate", "actor"): 3, ("reward", None): 1}
        labels = {
            name: worker.points("rl.worker.duration")[0].attributes[name] for name in ("rl.system", "rl.run.id")
        }
        assert labels == {"rl.system": "verl", "rl.run.id": "r1"}


def test_a_worker_reports_nothing_that_is_the_loops() -> None:
    with captured(LAUNCHED) as worker:
        with rlotel.train() as train:
            train.add(steps=2)
            assert worker.points("rl.phase.age") == []
        with pytest.raises(KeyError), rlotel.sample():
            raise KeyError
        worker.session.flush()
        assert {point.name for point in worker.points() if point.name.startswith("rl.") and point.value != 0} == {
            "rl.worker.duration",
            "rl.train.steps",
        }
        errors = [point.attributes.get("error.type") for point in worker.points("rl.worker.duration")]
        assert sorted(map(str, errors)) == ["KeyError", "None"]


def test_a_worker_that_runs_the_loop_reports_all_of_it() -> None:
    with captured(LAUNCHED) as worker:
        worker.session.recorder.loop_is_here()
        with rlotel.sync():
            worker.clock.advance(1)
        with rlotel.loop(), rlotel.train():
            worker.clock.advance(2)
        worker.clock.advance(4)
        assert worker.value("rl.sync.duration") == 1
        assert worker.value("rl.train.duration") == 2
        assert worker.value("rl.progress.age") == 4
        assert worker.points("rl.worker.duration") == []
        assert worker.points("rl.run.status") == []


@pytest.mark.parametrize("early", [True, False])
def test_a_launcher_whose_loop_is_elsewhere_reports_the_run_and_not_its_progress(
    telemetry: Telemetry, early: bool
) -> None:
    recorder = telemetry.session.recorder
    if early:
        recorder.loop_is_elsewhere()
        telemetry.session.flush()
    else:
        telemetry.session.flush()
        assert telemetry.value("rl.progress.age") == 0
        recorder.loop_is_elsewhere()
    assert telemetry.points("rl.progress.age") == []
    assert telemetry.value("rl.run.status", **{"rl.run.state": "running"}) == 1


def test_a_phase_before_anything_is_exported_joins_its_trace_later() -> None:
    span = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
    with captured(LAUNCHED) as worker:
        with Arrival({"traceparent": span}), rlotel.phase("early"):
            pass
        (early,) = worker.spans()
        assert (early.trace_id, early.parent_id) == (span[3:35], span[36:52])


@given(
    st.one_of(
        st.none(),
        st.integers(),
        st.text(),
        st.dictionaries(st.sampled_from(["traceparent", "rlotel.identity", "other"]), st.text() | st.integers()),
        st.from_regex(r"\A[0-9a-g]{2}-[0-9a-g]{32}-[0-9a-g]{16}-[0-9a-g]{2}\Z").map(lambda v: {"traceparent": v}),
    )
)
def test_whatever_a_carrier_holds_the_call_is_served(found: object) -> None:
    with Arrival(found):
        identity = carrier.arrived_identity()
    assert all(isinstance(value, str) for value in identity.values())
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize("number", ["9" * 5000, str(2**63), "²", "", "many", None])
def test_an_iteration_that_no_span_can_have_is_none(number: object) -> None:
    span = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
    with Arrival({"traceparent": span, "rlotel.iteration": number, "rlotel.identity": "[" * 100_000}):
        assert carrier.arrived_errand().iteration is None
        assert carrier.arrived_identity() == {}


def test_a_call_outside_of_everything_carries_nothing(telemetry: Telemetry) -> None:
    assert carrier.outgoing(telemetry.session.recorder.around(), "{}") is None


def test_settings_are_handed_over_and_what_is_secret_or_local_is_not() -> None:
    environ = {
        "RLOTEL_ENDPOINT": "http://collector:4318",
        "RLOTEL_HEADERS": "key=secret",
        "RLOTEL_CAPTURE": "/here/only",
        "RLOTEL_MODEL": "",
        "RLOTEL_RUN_ID": "other",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "key=secret",
        "OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=head-0",
        "OTEL_SERVICE_NAME": "train",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    config = resolve({"algorithm": "GRPO", "frameworks": "threads,ray", "headers": {"key": "secret"}}, environ)
    handed = handover.variables(config, environ, "r1", "one")
    assert handover.environment(handed) == {
        **handed,
        "RLOTEL_ENABLED": "true",
        "RLOTEL_RUN_ID": "r1",
        "RLOTEL_ATTEMPT": "one",
        "RLOTEL_ENDPOINT": "http://collector:4318",
        "RLOTEL_ALGORITHM": "GRPO",
        "RLOTEL_FRAMEWORKS": "threads,ray",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_SERVICE_NAME": "train",
        "OTEL_BSP_SCHEDULE_DELAY": "1000",
    }


def test_what_a_worker_has_of_its_own_wins_over_what_was_handed_to_it() -> None:
    handed = handover.variables(resolve({}, {}), {"RLOTEL_ENDPOINT": "http://head:4318"}, "r1", "one")
    own = {**handed, "RLOTEL_ENDPOINT": "http://node:4318"}
    assert handover.environment(own)["RLOTEL_ENDPOINT"] == "http://node:4318"
    assert handover.environment({**own, "RLOTEL_ENDPOINT": ""})["RLOTEL_ENDPOINT"] == "http://head:4318"


@pytest.mark.parametrize("broken", ["{", "[]", "1", "", "[" * 100_000, '{"RLOTEL_GPUS": 3}'])
def test_what_cannot_be_read_was_not_handed_over(broken: str) -> None:
    environ = {handover.DEFAULTS: broken, "OTHER": "1"}
    assert handover.environment(environ) == environ


def test_a_framework_that_was_named_may_be_missing_in_a_worker_alone() -> None:
    named = {"RLOTEL_FRAMEWORKS": "threads,verl"}
    with pytest.raises(SettingError, match="frameworks"), captured(named):
        pass
    with captured({**LAUNCHED, **named}), rlotel.phase("work"):
        pass
