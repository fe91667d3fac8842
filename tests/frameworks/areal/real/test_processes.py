"""AReaL in several processes: workers that make the rollouts, ranks that run the loop together; and SFT."""

import pytest

from tests.frameworks.areal.real.conftest import ROLLOUTS, UPDATES
from tests.frameworks.running import Run


def instances(run: Run, metric: str) -> set[object]:
    return {point.resource["service.instance.id"] for point in run.capture.points(metric)}


def test_a_worker_that_areal_starts_reports_its_rollouts(workers: Run) -> None:
    assert instances(workers, "rl.worker.duration").isdisjoint(instances(workers, "rl.loop.duration"))
    assert len(instances(workers, "rl.worker.duration")) == 1
    assert instances(workers, "rl.reward.duration") == instances(workers, "rl.worker.duration")


def test_rollouts_of_a_worker_are_in_the_trace_of_the_iteration_they_started_in(workers: Run) -> None:
    for root in workers.loops:
        rollouts = [
            child
            for child in root.children
            if child.span.name == "rl.sample" and child.span.attributes["rl.sample.kind"] == "generate"
        ]
        assert len(rollouts) >= ROLLOUTS
        for rollout in rollouts:
            assert rollout.span.resource != root.span.resource
            assert [child.span.name for child in rollout.children] == ["rl.reward"]


def test_rollouts_of_a_worker_are_counted_by_the_controller(workers: Run) -> None:
    rollouts = [
        span
        for span in workers.capture.spans("rl.sample", **{"rl.sample.kind": "generate"})
        if "error.type" not in span.attributes
    ]
    assert workers.total("rl.sample.samples") == 3 * ROLLOUTS
    assert 3 * ROLLOUTS <= workers.total("rl.sample.episodes") <= len(rollouts)
    assert instances(workers, "rl.sample.episodes") == instances(workers, "rl.loop.duration")


def test_all_ranks_are_counted_once(ranks: Run) -> None:
    data = [line["data"] for line in ranks.logged]
    assert ranks.observations("rl.loop.duration") == 2
    assert ranks.total("rl.sample.samples") == 2 * ROLLOUTS == sum(line["ppo_actor/n_seqs"] for line in data)
    assert ranks.total("rl.sample.episodes") == sum(line["rollout/reward__count"] for line in data)
    assert {line["ppo_actor/update/grad_norm__count"] for line in data} == {2 * UPDATES}
    assert ranks.total("rl.train.steps", **{"rl.role": "actor"}) == 2 * UPDATES
    assert ranks.gauge("rl.environment.reward.mean")[-1] == pytest.approx(data[-1]["ppo_actor/task_reward/avg"])


def test_all_ranks_are_in_the_trace_of_rank_0(ranks: Run) -> None:
    for root in ranks.loops:
        updates = [child.span for child in root.children if child.span.name == "rl.train"]
        assert len({str(span.resource["service.instance.id"]) for span in updates}) == 2
    assert len(instances(ranks, "rl.train.duration")) == 1
    assert ranks.observations("rl.worker.duration", **{"rl.phase.name": "train"}) == 2


def test_a_training_worker_reports_its_updates(update: Run) -> None:
    (span,) = update.capture.spans("rl.train")
    assert span.attributes["rl.loop.iteration"] == 3
    (point,) = update.capture.latest("rl.worker.duration")
    assert (point.attributes["rl.phase.name"], point.attributes["rl.role"]) == ("train", "actor")
    assert point.count == 1
    assert "rl.train.duration" not in update.capture.names()
    assert update.total("rlotel.errors") == 0


def test_supervised_training_is_followed_without_rollouts(supervised: Run) -> None:
    data = [line["data"] for line in supervised.logged]
    assert [root.span.attributes["rl.loop.iteration"] for root in supervised.loops] == [1, 2, 3]
    assert supervised.total("rl.train.steps", **{"rl.role": "actor"}) == 3
    assert supervised.total("rl.sample.samples") == 0
    assert supervised.gauge("rl.train.loss", **{"rl.loss.type": "total"})[-1] == pytest.approx(
        data[-1]["sft/loss/avg"]
    )
    assert supervised.gauge("rl.evaluation.score", **{"rl.evaluation.name": "loss"})[-1] == pytest.approx(
        data[1]["sft-eval/loss/avg"]
    )
    assert supervised.observations("rl.phase.duration", **{"rl.phase.name": "evaluate"}) == 1
    assert {point.attributes["rl.algorithm"] for point in supervised.capture.points("rl.loop.duration")} == {"SFT"}
