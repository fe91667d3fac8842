"""Rollouts where they are made: what is recorded of them, and into which trace."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rlotel.testing import captured

from .conftest import Areal, settings, steps


class Engine:
    """Knows which weights it has."""

    def __init__(self, version: int = 0) -> None:
        self.version = version

    def get_version(self) -> int:
        return self.version


class Sums:
    """A user's workflow: it generates for 2 s, and is scored for 1 s."""

    def __init__(self, areal: Areal, error: Exception | None = None) -> None:
        self.areal = areal
        self.error = error
        self.reward = areal.module("api.reward_api").AsyncRewardWrapper(self.score)

    async def score(self, *_: Any) -> float:
        self.areal.pass_(1.0)
        if self.error is not None:
            raise self.error
        return 1.0

    async def arun_episode(self, engine: Engine, data: Any) -> Any:
        await asyncio.sleep(0)  # others begin
        self.areal.pass_(2.0)
        return {"rewards": await self.reward("question", "answer")}


class Harder(Sums):
    """One that does as the other, and then some."""

    async def arun_episode(self, engine: Engine, data: Any) -> Any:
        self.areal.pass_(0.5)
        return await super().arun_episode(engine, data)


class Coding(Sums):
    """One that runs code in a sandbox."""

    async def arun_episode(self, engine: Engine, data: Any) -> Any:
        self.areal.play(sandbox=lambda _: self.areal.pass_(4.0))
        self.areal.module("infra.sandbox.runner").DaytonaRunner().run("print()")
        return await super().arun_episode(engine, data)


def roll(areal: Areal, workflow: Any, engine: Engine, *, evaluates: bool = False, times: int = 1) -> list[Any]:
    """Run a workflow as AReaL does, one task after another."""
    executor = areal.module("infra.workflow_executor").WorkflowExecutor(engine)
    task = SimpleNamespace(workflow=workflow, data={}, is_eval=evaluates, task_id=1)
    return [asyncio.run(executor._create_workflow_task(task)()) for _ in range(times)]


def workers(areal: Areal) -> dict[str, float | None]:
    """What the durations of workers add up to, by phase."""
    return {
        str(point.attributes["rl.phase.name"]): point.sum for point in areal.telemetry.points("rl.worker.duration")
    }


def test_rollouts_and_rewards_are_timed_where_they_are_made(areal: Areal) -> None:
    assert roll(areal, Sums(areal), Engine(), times=2) == [{"rewards": 1.0}] * 2
    assert workers(areal) == {"sample": 6.0, "reward": 2.0}
    assert areal.telemetry.value("rl.reward.duration") == 2.0
    assert areal.telemetry.points("rl.sample.duration") == []
    assert areal.telemetry.points("rl.loop.duration") == []


def test_rollouts_that_run_together_are_one_observation(areal: Areal) -> None:
    grouped = areal.module("infra.remote_inf_engine").GroupedRolloutWorkflow(Sums(areal), 4, None)
    roll(areal, grouped, Engine())
    (point,) = areal.telemetry.points("rl.worker.duration", **{"rl.phase.name": "sample"})
    assert (point.count, point.sum) == (1, 12.0)
    assert len(areal.telemetry.spans("rl.sample")) == 4


def test_a_rollout_is_in_the_trace_of_the_iteration_it_starts_in(areal: Areal) -> None:
    engine, workflow = Engine(), Sums(areal)

    def body() -> None:
        for version in (0, 1):
            engine.version = version
            roll(areal, workflow, engine)
            areal.time("rollout", 1.0)
            engine.version = version + 1
            areal.time("eval", 0.0, steps(areal.due, lambda: roll(areal, workflow, engine, evaluates=True)))
            areal.commit(version)

    trainer = areal.trainer(settings())
    areal.play(train=lambda _: body())
    trainer.train()
    loops = areal.telemetry.spans("rl.loop")
    for loop in loops:
        own = [span for span in areal.telemetry.spans() if span.trace_id == loop.trace_id and span is not loop]
        assert {span.attributes["rl.loop.iteration"] for span in own} == {loop.attributes["rl.loop.iteration"]}
        children = [span for span in own if span.parent_id == loop.span_id]
        assert [span.attributes.get("rl.sample.kind") for span in children if span.name == "rl.sample"] == [
            "generate",
            "wait",
        ]
    assert len(loops) == 2


def test_rollouts_of_an_evaluation_are_none_of_training(areal: Areal) -> None:
    roll(areal, Sums(areal), Engine(3), evaluates=True)
    assert workers(areal) == {"evaluate": 3.0, "reward": 1.0}
    assert areal.telemetry.points("rl.reward.duration") == []
    assert areal.telemetry.spans("rl.sample") == []


def test_a_workflow_that_runs_the_one_it_inherits_from_is_one_rollout(areal: Areal) -> None:
    roll(areal, Sums(areal), Engine())
    roll(areal, Harder(areal), Engine())
    assert [span.end_ns - span.start_ns for span in areal.telemetry.spans("rl.sample")] == [
        3_000_000_000,
        3_500_000_000,
    ]


def test_code_that_is_run_in_a_sandbox_is_a_tool(areal: Areal) -> None:
    roll(areal, Coding(areal), Engine())
    assert workers(areal) == {"sample": 7.0, "tool": 4.0, "reward": 1.0}


def test_a_reward_that_fails_fails_its_rollout_and_training_goes_on(areal: Areal) -> None:
    assert roll(areal, Sums(areal, ValueError("no answer")), Engine()) == [None]
    assert [(span.name, span.attributes.get("error.type")) for span in areal.telemetry.spans()] == [
        ("rl.reward", "ValueError"),
        ("rl.sample", "ValueError"),
    ]
    assert areal.telemetry.value("rl.reward.duration", **{"error.type": "ValueError"}) == 1.0


def test_the_error_of_a_workflow_is_the_users_own(areal: Areal) -> None:
    error = ValueError("no answer")
    workflow = Sums(areal, error)
    roll(areal, workflow, Engine())
    with pytest.raises(ValueError, match="no answer") as caught:
        asyncio.run(workflow.arun_episode(Engine(), {}))
    assert caught.value is error


def test_rewards_outside_of_rollouts_are_left_alone(areal: Areal) -> None:
    assert asyncio.run(Sums(areal).reward()) == 1.0
    assert areal.telemetry.spans() == []


def test_a_users_class_is_let_go_of_when_all_is(standins: None) -> None:
    before = vars(Sums)["arun_episode"]
    with captured(frameworks=("areal",)) as telemetry:
        areal = Areal(telemetry)
        roll(areal, Sums(areal), Engine())
        assert vars(Sums)["arun_episode"] is not before
    assert vars(Sums)["arun_episode"] is before
