"""The asynchronous trainer: another actor makes rollouts and evaluates beside it."""

import pytest

from rlotel import conformance
from tests.frameworks.openrlhf.real.conftest import ROWS
from tests.frameworks.openrlhf.real.test_sync import logged, own
from tests.frameworks.running import Run, phase, seconds

NUMBER = 4


def test_each_iteration_is_one_trace_with_what_was_done_meanwhile(asynchronous: Run) -> None:
    roots = asynchronous.loops
    assert [root.span.attributes["rl.loop.iteration"] for root in roots] == list(range(1, NUMBER + 1))
    for root in roots:
        mine = [child for child in root.children if child.span.resource == root.span.resource]
        assert [phase(node.span) for node in mine[:3]] == ["sample", "experience", "data"]
        assert mine[0].span.attributes["rl.sample.kind"] == "wait"
        roles = [node.span.attributes["rl.role"] for node in mine if phase(node.span) == "train"]
        assert sorted(map(str, roles)) == ["actor", "critic"]
    made = [
        child.span
        for root in roots
        for child in root.children
        if phase(child.span) == "sample" and child.span.resource != root.span.resource
    ]
    assert {str(span.resource["ray.actor.class"]) for span in made} == {"GenerateSamplesActor"}
    assert len(made) == NUMBER / 2  # each call makes rollouts for two iterations
    (evaluation,) = [
        span
        for span in asynchronous.capture.spans()
        if phase(span) == "evaluate" and span.resource["ray.actor.class"] == "GenerateSamplesActor"
    ]
    assert evaluation.trace_id in {root.span.trace_id for root in roots}


def test_making_rollouts_is_told_apart_from_waiting_for_them(asynchronous: Run) -> None:
    (made,) = asynchronous.capture.latest("rl.sample.duration", **{"rl.sample.kind": "generate"})
    (waited,) = asynchronous.capture.latest("rl.sample.duration", **{"rl.sample.kind": "wait"})
    assert (made.count, waited.count) == (NUMBER / 2, NUMBER)
    theirs = [data["timing/generation"] for data in logged(asynchronous)]
    assert min(theirs) < 0.01  # rollouts of an earlier call
    assert 0 <= sum(theirs) - float(made.sum or 0) < 0.05


def test_the_wait_for_the_lock_is_no_sync(asynchronous: Run) -> None:
    theirs = sum(data["timing/broadcast"] for data in logged(asynchronous))
    ours = asynchronous.total("rl.sync.duration")
    assert 0 <= ours - asynchronous.worked("sync") < 0.1
    assert ours < theirs - 0.1  # rollouts were made, or it was evaluated, meanwhile


def test_durations_are_those_of_openrlhfs_timers(asynchronous: Run) -> None:
    theirs = [data["timing/make_experience"] for data in logged(asynchronous)]
    over = [seconds - own(asynchronous, number)["experience"] for number, seconds in enumerate(theirs)]
    assert -0.001 < min(over) < 0.005
    for number, data in enumerate(logged(asynchronous)):
        train = [
            seconds(child.span)
            for child in asynchronous.loops[number].children
            if child.span.attributes.get("rl.role") == "critic" and phase(child.span) == "train"
        ]
        assert abs(data["timing/ppo_train"] - sum(train)) < 0.1


def test_rollouts_are_counted_once_and_with_their_turns(asynchronous: Run) -> None:
    assert asynchronous.total("rl.sample.samples") == asynchronous.total("rl.sample.episodes") == NUMBER * ROWS
    turns = asynchronous.total("rl.sample.steps")
    assert NUMBER * ROWS < turns <= 2 * NUMBER * ROWS
    assert 1 <= asynchronous.gauge("rl.environment.episode.turns.mean")[-1] <= 2
    prompts = asynchronous.total("rl.sample.tokens", **{"rl.token.type": "prompt"})
    answered = turns - NUMBER * ROWS  # turns that were not the last
    assert prompts == NUMBER * ROWS * len("1+1=") + answered * len("!")
    for role in ("actor", "critic"):
        assert asynchronous.total("rl.train.steps", **{"rl.role": role}) == NUMBER * ROWS / 4


def test_rollouts_are_as_old_as_the_syncs_since_they_were_made(asynchronous: Run) -> None:
    # The first call makes those of the first two iterations, and so on; it begins beside the one before.
    assert asynchronous.gauge("rl.sample.staleness")[-1] in (1.0, 2.0)


def test_tools_are_timed_in_the_engines(asynchronous: Run) -> None:
    at_work = asynchronous.total("rl.worker.duration", **{"rl.phase.name": "tool"})
    assert 0 < at_work < asynchronous.total("rl.worker.duration", **{"rl.phase.name": "sample"}) * 2


def test_scores_of_the_evaluation_come_with_the_best_checkpoint(asynchronous: Run) -> None:
    (last,) = logged(asynchronous, "scores")[-1:]
    (score,) = asynchronous.capture.latest("rl.evaluation.score", **{"rl.evaluation.name": "default_pass1"})
    assert score.value == pytest.approx(last["eval_default_pass1"])
    assert asynchronous.total("rl.checkpoint.operations") == 3  # two by their number, and the best


def test_nothing_breaks_the_conventions(asynchronous: Run) -> None:
    assert conformance.check(asynchronous.lines) == []
    assert "inside rlotel" not in asynchronous.output
    assert asynchronous.total("rlotel.errors") == 0
    identity = {"rl.system": "openrlhf", "rl.algorithm": "PPO", "rl.model.name": "tiny-qwen2"}
    for span in asynchronous.capture.spans():
        assert identity.items() <= span.resource.items(), span
