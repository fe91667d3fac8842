"""Updates where they are computed."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rlotel.handover import ATTEMPT
from rlotel.integrations.areal.tables import UPDATES
from rlotel.testing import captured

from .conftest import Areal, settings

VERSION = 6


@pytest.fixture
def worker(standins: None) -> Iterator[Areal]:
    """AReaL in one of its workers."""
    with captured({ATTEMPT: "test"}, frameworks=("areal",)) as telemetry:
        yield Areal(telemetry)


def call(areal: Areal, target: str, seconds: float = 2.0, error: Exception | None = None) -> Any:
    """A worker is asked for something that takes time, and may fail."""
    module, _, path = target.removeprefix("areal.").partition(":")
    kind, _, method = path.partition(".")

    def work(_: Any) -> str:
        areal.pass_(seconds)
        if error is not None:
            raise error
        return "done"

    areal.play(**{method: work})
    engine = SimpleNamespace(get_version=lambda: VERSION)
    return getattr(getattr(areal.module(module), kind)(None, engine), method)([])


def test_an_update_is_timed_in_the_trace_of_its_iteration(worker: Areal) -> None:
    assert call(worker, "areal.trainer.ppo.actor:PPOActor.ppo_update") == "done"
    assert call(worker, "areal.trainer.ppo.critic:PPOCritic.ppo_update", 1.0) == "done"
    assert call(worker, "areal.trainer.ppo.critic:PPOCritic.compute_values", 0.5) == "done"
    spans = worker.telemetry.spans()
    assert {span.attributes["rl.loop.iteration"] for span in spans} == {VERSION + 1}
    assert len({span.trace_id for span in spans}) == 1
    points = worker.telemetry.points("rl.worker.duration")
    assert {(p.attributes["rl.phase.name"], p.attributes["rl.role"], p.sum) for p in points} == {
        ("train", "actor", 2.0),
        ("train", "critic", 1.0),
        ("value", "critic", 0.5),
    }
    assert worker.telemetry.points("rl.train.duration") == []


@pytest.mark.parametrize("target", UPDATES)
def test_whatever_trains_is_watched(worker: Areal, target: str) -> None:
    assert call(worker, target) == "done"
    (point,) = worker.telemetry.points("rl.worker.duration")
    assert (point.attributes["rl.phase.name"], point.sum) == (UPDATES[target].phase, 2.0)


def test_an_update_that_fails_is_told_where_it_fails(worker: Areal) -> None:
    error = RuntimeError("out of memory")
    with pytest.raises(RuntimeError) as caught:
        call(worker, "areal.trainer.ppo.actor:PPOActor.ppo_update", error=error)
    assert caught.value is error
    (point,) = worker.telemetry.points("rl.worker.duration")
    assert point.attributes["error.type"] == "RuntimeError"


def test_in_the_process_of_the_loop_its_timers_tell(areal: Areal) -> None:
    assert call(areal, "areal.trainer.ppo.actor:PPOActor.ppo_update") == "done"
    assert areal.telemetry.spans() == []
    assert areal.telemetry.points("rl.worker.duration") == []


def test_on_another_rank_that_runs_the_loop_its_timers_tell(standins: None) -> None:
    environ = {ATTEMPT: "test", "RANK": "1", "WORLD_SIZE": "2"}
    with captured(environ, frameworks=("areal",)) as telemetry:
        rank = Areal(telemetry)
        rank.logger(settings())
        rank.time("train_step", 0.0, lambda: call(rank, "areal.trainer.ppo.actor:PPOActor.ppo_update"))
        rank.commit(0)
        (point,) = telemetry.points("rl.worker.duration")
        assert (point.attributes["rl.phase.name"], point.count, point.sum) == ("train", 1, 2.0)


def test_what_a_reference_model_computes_is_in_no_iteration_of_its_own(worker: Areal) -> None:
    assert call(worker, "areal.trainer.ppo.actor:PPOActor.compute_logp") == "done"
    assert worker.telemetry.spans() == []
