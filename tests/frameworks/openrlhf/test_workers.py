"""Engines, workers and the launcher on stand-ins: who says what."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from rlotel import carrier
from rlotel.carrier import Arrival

from .conftest import ARGS, Openrlhf, nested, rollout

PARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


def arrives(iteration: int, **more: str) -> dict[str, str]:
    """What a call from the trainer brings."""
    return {carrier.TRACEPARENT: PARENT, carrier.ITERATION: str(iteration), **more}


@pytest.fixture
def worker(openrlhf: Openrlhf) -> Openrlhf:
    """As in an actor of a run that another process has launched."""
    openrlhf.telemetry.session.recorder.process.launcher = False
    openrlhf.telemetry.session.flush(0)  # it has exported before
    return openrlhf


def seconds(openrlhf: Openrlhf, name: str) -> tuple[Any, Any]:
    (point,) = openrlhf.telemetry.points("rl.worker.duration", **{"rl.phase.name": name})
    return point.count, point.sum


def make_rollouts(openrlhf: Openrlhf, number: int, executor: Any, brought: dict[str, str]) -> None:
    """Ask an executor for rollouts side by side."""

    async def all_of_them() -> None:
        await asyncio.gather(*(executor.execute("1+1=", "2", None, 32, None, None) for _ in range(number)))

    with Arrival(brought):
        asyncio.run(all_of_them())


def test_rollouts_of_an_iteration_are_observed_once_however_many_they_are(worker: Openrlhf) -> None:
    agent = worker.module("utils.agent").SingleTurnAgentExecutor()

    async def score(_: Any) -> None:
        worker.pass_(1)

    async def make(arguments: Any) -> None:
        await asyncio.sleep(0)  # the others begin
        worker.pass_(2)
        await arguments["self"]._fetch_rewards_via_func([], [], [])

    worker.play(execute=make, _fetch_rewards_via_func=score)
    make_rollouts(worker, 3, agent, arrives(4))
    assert seconds(worker, "sample") == (1, pytest.approx(9))
    assert seconds(worker, "reward") == (1, pytest.approx(3))
    assert worker.telemetry.value("rl.reward.duration") == pytest.approx(3)
    spans = worker.telemetry.spans("rl.sample")
    assert [span.attributes["rl.loop.iteration"] for span in spans] == [4, 4, 4]
    assert {span.trace_id for span in spans} == {"a" * 32}


def test_rewards_in_an_evaluation_are_none_of_training(worker: Openrlhf) -> None:
    agent = worker.module("utils.agent").SingleTurnAgentExecutor()

    async def score(_: Any) -> None:
        worker.pass_(1)

    async def make(arguments: Any) -> None:
        await arguments["self"]._fetch_rewards_via_http([], [], [])

    worker.play(execute=make, _fetch_rewards_via_http=score)
    make_rollouts(worker, 1, agent, arrives(4, **{carrier.EVALUATES: "true"}))
    assert seconds(worker, "evaluate") == seconds(worker, "reward") == (1, pytest.approx(1))
    assert worker.telemetry.points("rl.reward.duration") == []
    assert worker.telemetry.spans("rl.sample") == []


def test_a_users_environment_is_timed_and_its_failure_passes_through(worker: Openrlhf) -> None:
    class Environment:
        async def step(self, states: Any) -> None:
            worker.pass_(1)
            raise LookupError("no such tool")

    agent = worker.module("utils.agent").MultiTurnAgentExecutor(Environment)

    async def make(arguments: Any) -> None:
        await arguments["self"].agent_instance_cls().step({})

    worker.play(execute=make)
    with pytest.raises(LookupError, match="no such tool"):
        make_rollouts(worker, 1, agent, arrives(1))
    assert seconds(worker, "tool") == (1, pytest.approx(1))
    for name in ("tool", "sample"):
        (point,) = worker.telemetry.points("rl.worker.duration", **{"rl.phase.name": name})
        assert point.attributes["error.type"] == "LookupError"


def test_rollouts_that_no_iteration_asks_for_are_not_told(worker: Openrlhf) -> None:
    agent = worker.module("utils.agent").SingleTurnAgentExecutor()

    async def make(_: Any) -> None:
        worker.pass_(1)

    worker.play(execute=make)
    make_rollouts(worker, 1, agent, {})
    assert worker.telemetry.points("rl.worker.duration") == []


def test_workers_say_what_they_are_asked_for(worker: Openrlhf) -> None:
    launcher = worker.module("trainer.ray.launcher")
    policy = launcher.PolicyModelActor(1, 0, None, None)
    worker.play(
        execute_batch=lambda _: worker.pass_(1),
        ppo_train=lambda _: worker.pass_(2),
        broadcast_to_vllm=lambda _: worker.pass_(3),
    )
    policy.execute_batch("forward", {}, 0, 1)
    policy.execute_batch("append", {}, 0, 1)
    launcher.BaseModelActor.execute_batch(policy, "forward", {}, 0, 1)  # as Ray calls it
    worker.module("trainer.ray.ppo_actor").ActorPPOTrainer().ppo_train(0.0)
    worker.module("trainer.ray.ppo_critic").CriticPPOTrainer().ppo_train()
    worker.module("trainer.ray.ppo_actor").ActorPPOTrainer().broadcast_to_vllm()
    told = {
        (point.attributes["rl.phase.name"], point.attributes.get("rl.role")): (point.count, point.sum)
        for point in worker.telemetry.points("rl.worker.duration")
    }
    assert told == {
        ("logprob", "actor"): (2, 2.0),
        ("train", "actor"): (1, 2.0),
        ("train", "critic"): (1, 2.0),
        ("sync", None): (1, 3.0),
    }


@pytest.mark.parametrize(
    ("folder", "found", "counted"), [("_actor", "x", 1), ("_critic", "x", 0), ("_actor", None, 0)]
)
def test_a_restored_policy_is_told_by_one_worker(
    worker: Openrlhf, folder: str, found: str | None, counted: int
) -> None:
    strategy = worker.module("utils.deepspeed.deepspeed").DeepspeedStrategy()

    def load(_: Any) -> Any:
        worker.pass_(5)
        return found, {}

    worker.play(load_ckpt=load)
    strategy.load_ckpt(None, f"/results/run/{folder}")
    points = worker.telemetry.points("rl.checkpoint.duration", **{"rl.checkpoint.operation": "restore"})
    assert [(point.count, point.sum) for point in points] == [(1, 5.0)] * counted


def test_the_launcher_says_who_the_run_is_and_leaves_the_loop_to_the_trainer(openrlhf: Openrlhf) -> None:
    openrlhf.module("utils").get_strategy(nested(ARGS))
    assert openrlhf.telemetry.session.recorder.process.loop == "elsewhere"
    (status, *_) = openrlhf.telemetry.points("rl.run.status")
    identity = {"rl.system": "openrlhf", "rl.algorithm": "GRPO", "rl.model.name": "Qwen/Qwen3-0.6B"}
    assert identity.items() <= status.resource.items() or identity.items() <= status.attributes.items()


def test_a_launcher_of_another_kind_of_training_has_no_loop(openrlhf: Openrlhf) -> None:
    openrlhf.module("utils").get_strategy(SimpleNamespace(train=SimpleNamespace(batch_size=8)))
    assert openrlhf.telemetry.session.recorder.process.loop is None


def test_turns_of_an_agent_are_left_on_its_rollouts(openrlhf: Openrlhf) -> None:
    made = rollout(4, 2)
    openrlhf.play(_process_response_into_experience=lambda _: made)
    openrlhf.make_generator()._process_response_into_experience({"action_ranges": [(1, 2)]})
    assert not hasattr(made, "rlotel_turns")  # no agent: a rollout is one turn
    openrlhf.make_generator(train__agent_func_path="agent.py")._process_response_into_experience(
        {"action_ranges": [(1, 2), (3, 4)]}
    )
    assert made.rlotel_turns == 2


def test_a_call_says_which_iteration_it_is_for_and_whether_it_evaluates(openrlhf: Openrlhf) -> None:
    openrlhf.make_trainer()
    sent: list[dict[str, str]] = []

    def ask(_: Any) -> Any:
        sent.append(carrier.outgoing(openrlhf.telemetry.session.recorder.around(), json.dumps({})) or {})
        return [rollout(4, 2)], None, 1, False

    openrlhf.play(generate_samples=ask, generate_eval_samples=ask)
    openrlhf.generator.generate_samples()
    openrlhf.generator.generate_eval_samples()
    assert [one[carrier.ITERATION] for one in sent] == ["1", "1"]
    assert [one.get(carrier.EVALUATES) for one in sent] == [None, "true"]
    with Arrival(sent[1]):
        assert carrier.arrived_errand() == carrier.Errand(1, evaluates=True)
        again = carrier.outgoing(None, None)  # passed on
    assert again is not None
    assert again[carrier.EVALUATES] == "true"
    assert carrier.arrived_errand() == carrier.Errand()
