"""Rollouts and models in workers: each process tells what was done in it, and nothing that others tell."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from opentelemetry.trace import SpanContext
from verl.utils import rollout_trace
from verl.utils.profiler import simple_timer
from verl.utils.tracking import RLInsightLogger

from rlotel.carrier import IDENTITY, TRACEPARENT, Arrival
from rlotel.handover import ATTEMPT
from rlotel.semconv import metrics as m
from rlotel.testing import Telemetry, captured

pytestmark = pytest.mark.filterwarnings("ignore")


CALLER = SpanContext(0xABC, 0xDEF, is_remote=True)
"""The span of the loop that asks for what is done here."""


@pytest.fixture
def worker() -> Iterator[Telemetry]:
    """A process below the one that launched the run, in a call from the one with the loop."""
    identity = {"rl.run.id": "test", "rl.system": "verl"}
    call = {TRACEPARENT: f"00-{CALLER.trace_id:032x}-{CALLER.span_id:016x}-01", IDENTITY: json.dumps(identity)}
    with captured({ATTEMPT: "test"}) as telemetry, Arrival(call):
        yield telemetry


async def rollout(telemetry: Telemetry, seconds: float, *, validate: bool = False) -> None:
    with rollout_trace.rollout_trace_attr(step=5, sample_index=0, rollout_n=0, validate=validate):
        await asyncio.sleep(0)
        telemetry.clock.advance(seconds)
        with simple_timer("tool_calls", {}):
            telemetry.clock.advance(1)
        with simple_timer("compute_score", {}):
            await asyncio.sleep(0)
            telemetry.clock.advance(2)


def of(phase: str) -> dict[str, str]:
    return {"rl.phase.name": phase}


def test_rollouts_of_one_iteration_are_one_observation(worker: Telemetry) -> None:
    async def batch() -> None:
        await asyncio.gather(*(rollout(worker, 3) for _ in range(4)))

    asyncio.run(batch())
    (sampled,) = worker.points(m.WORKER_DURATION, **of("sample"))
    assert (sampled.count, sampled.sum) == (1, 4 * 6)
    assert worker.value(m.WORKER_DURATION, **of("tool")) == 4
    (scored,) = worker.points(m.REWARD_DURATION)
    assert scored.count == 1
    assert worker.points(m.SAMPLE_DURATION) == []  # the trainer's to tell


def test_each_rollout_is_a_span_with_its_tools_and_scoring(worker: Telemetry) -> None:
    asyncio.run(rollout(worker, 3))
    ((root,),) = worker.capture().traces().values()
    assert (int(root.span.trace_id, 16), int(root.span.parent_id or "", 16)) == (CALLER.trace_id, CALLER.span_id)
    assert (root.span.name, root.span.attributes["rl.sample.kind"]) == ("rl.sample", "generate")
    assert root.span.attributes["rl.loop.iteration"] == 5
    assert [part.span.name for part in root.children] == ["rl.phase", "rl.reward"]


def test_rollouts_of_a_validation_are_no_samples(worker: Telemetry) -> None:
    asyncio.run(rollout(worker, 3, validate=True))
    assert worker.value(m.WORKER_DURATION, **of("evaluate")) == 6
    assert worker.points(m.WORKER_DURATION, **of("sample")) == []
    assert worker.points(m.REWARD_DURATION) == []


def test_a_rollout_that_fails_is_told_with_its_error(worker: Telemetry) -> None:
    async def fail() -> None:
        with rollout_trace.rollout_trace_attr(step=5, validate=False):
            raise TimeoutError

    with pytest.raises(TimeoutError):
        asyncio.run(fail())
    (failed,) = worker.points(m.WORKER_DURATION, **of("sample"))
    assert failed.attributes["error.type"] == "TimeoutError"


def test_the_models_of_a_worker_tell_how_long_they_were_asked(worker: Telemetry) -> None:
    for state in ("actor_update", "ref_compute_log_prob", "vllm_generate"):
        with RLInsightLogger.trace_state(state, state_lane_id="rank_3"):
            worker.clock.advance(2)
    told = {
        (str(point.attributes["rl.phase.name"]), point.attributes.get("rl.role"), point.sum)
        for point in worker.points(m.WORKER_DURATION)
    }
    assert told == {("train", "actor", 2), ("ref_logprob", "reference", 2)}


def test_a_workers_states_say_once_what_its_gpus_are_for(worker: Telemetry) -> None:
    told: list[str] = []
    worker.session.process.on_role = lambda role, _devices: told.append(role)
    for state in ("actor_update", "ref_compute_log_prob", "actor_update", "vllm_generate"):
        with RLInsightLogger.trace_state(state, state_lane_id="rank_3"):
            worker.clock.advance(1)
    assert told == ["trainer", "rollout"]


def test_in_the_trainers_own_process_rollouts_are_in_its_timers(telemetry: Telemetry) -> None:
    asyncio.run(rollout(telemetry, 3))
    assert telemetry.spans() == []
