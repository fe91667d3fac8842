"""Env runners and learners in actors: one trace an iteration, and nothing counted twice."""

import pytest

from rlotel.capture import SpanNode
from tests.frameworks.running import Run, phase, seconds


def own(root: SpanNode) -> list[str]:
    """The phases of the process that has the loop."""
    return [phase(node.span) for node in root.children if node.span.resource == root.span.resource]


def theirs(node: SpanNode) -> list[tuple[str, str]]:
    """What actors did, by their class."""
    found = [
        (str(child.span.resource["ray.actor.class"]), phase(child.span))
        for child in node.children
        if "ray.actor.class" in child.span.resource
    ]
    return found + [one for child in node.children for one in theirs(child)]


def test_what_env_runners_do_is_in_the_trace_of_the_iteration(ppo: Run) -> None:
    sample = ("SingleAgentEnvRunner", "sample")
    assert [sorted(theirs(root)) for root in ppo.loops] == [
        [sample] * 2,
        [("SingleAgentEnvRunner", "evaluate"), *[sample] * 2],
        [sample] * 2,
    ]
    for root in ppo.loops:
        (asked,) = (node for node in root.children if phase(node.span) == "sample")
        assert len(theirs(asked)) == 2
        assert max(seconds(child.span) for child in asked.children) < seconds(asked.span)


def test_an_iteration_takes_as_long_as_rllib_says(ppo: Run) -> None:
    over = [
        logged["time_this_iter_s"] - seconds(root.span) for root, logged in zip(ppo.loops, ppo.logged, strict=True)
    ]
    # Theirs is around ours. On a busy machine something may come in between, but not every time.
    assert min(over) > -0.0001
    assert min(over) < 0.001
    assert max(over) < 0.25


def test_an_evaluation_beside_training_is_in_neither_its_counts_nor_its_values(ppo: Run) -> None:
    training = ["sample", "train", "sync", "connectors"]
    evaluated = [root for root in ppo.loops if "evaluate" in own(root)]
    assert evaluated == [ppo.loops[1]]
    assert all([name for name in own(root) if name != "evaluate"] == training for root in ppo.loops)
    runners = [logged["env_runners"] for logged in ppo.logged]
    assert ppo.total("rl.sample.steps") == sum(found["num_env_steps_sampled"] for found in runners)
    assert ppo.total("rl.sample.steps") == runners[-1]["num_env_steps_sampled_lifetime"]
    assert ppo.total("rl.sample.episodes") == sum(found["num_episodes"] for found in runners)
    assert ppo.gauge("rl.environment.reward.mean")[-1] == runners[-1]["episode_return_mean"]
    (score,) = ppo.capture.latest("rl.evaluation.score", **{"rl.evaluation.name": "episode_return_mean"})
    assert score.value == ppo.logged[1]["evaluation"]["env_runners"]["episode_return_mean"]


def test_optimizer_steps_are_those_of_the_optimizer(ppo: Run) -> None:
    assert ppo.total("rl.train.steps") == ppo.logged[-1]["optimizer_steps"] > 0


def test_an_asynchronous_iteration_is_aggregated(appo: Run) -> None:
    assert [root.span.attributes["rl.loop.iteration"] for root in appo.loops] == [1, 2, 3]
    for root, logged in zip(appo.loops, appo.logged, strict=True):
        phases = own(root)
        assert len(phases) == len(set(phases))
        assert set(phases) >= {"sample", "train"}
        assert logged["num_training_step_calls_per_iteration"] > len(root.children)
        asked_for = theirs(root)
        assert set(asked_for) == {("SingleAgentEnvRunner", "sample")}
        assert len(asked_for) <= 2 * 8


def test_an_asynchronous_trainer_waits_while_env_runners_sample(appo: Run) -> None:
    kinds = {point.attributes["rl.sample.kind"] for point in appo.capture.latest("rl.sample.duration")}
    assert kinds == {"wait"}
    looped = appo.total("rl.loop.duration")
    assert 0 < appo.total("rl.sample.duration") < looped
    assert 0 < appo.total("rl.train.duration") < looped
    assert appo.total("rl.phase.time") == pytest.approx(looped)
    for point in appo.capture.latest("rl.worker.duration", **{"rl.phase.name": "sample"}):
        assert (point.count or 0) * 25 >= appo.logged[-1]["env_runners"]["num_env_steps_sampled_lifetime"] / 4


def test_asynchronous_counts_are_those_of_the_results(appo: Run) -> None:
    runners = [logged["env_runners"] for logged in appo.logged]
    assert appo.total("rl.sample.steps") == runners[-1]["num_env_steps_sampled_lifetime"]
    assert appo.total("rl.sample.episodes") == runners[-1]["num_episodes_lifetime"]
    # The thread goes on while a result is looked at.
    assert abs(appo.total("rl.train.steps") - appo.logged[-1]["optimizer_steps"]) <= 2
    assert appo.gauge("rl.sample.staleness")[-1] >= 0
    last = appo.logged[-1]["learners"]["default_policy"]
    assert appo.gauge("rl.grad_norm")[-1] == last["gradients_default_optimizer_global_norm"]


def test_every_learner_is_seen_and_their_steps_are_counted_once(broken: Run) -> None:
    for root in broken.loops:
        (asked,) = (node for node in root.children if phase(node.span) == "train")
        assert [work for _, work in theirs(asked)] == ["train", "train"]
    rows = sum(logged["learners"]["default_policy"]["num_module_steps_trained"] for logged in broken.logged)
    assert broken.total("rl.train.steps") * 2 * 64 == rows > 0
    (point,) = broken.capture.latest("rl.train.duration")
    assert point.count == 2


def test_an_env_runner_that_breaks_is_an_error_and_is_waited_for(broken: Run) -> None:
    failed = [span for span in broken.capture.spans() if span.status_code == "error"]
    assert [(phase(span), span.resource["ray.actor.class"]) for span in failed] == [
        ("sample", "SingleAgentEnvRunner")
    ]
    assert broken.observations("rl.worker.duration", **{"error.type": "RuntimeError"}) == 1
    assert [own(root)[0] for root in broken.loops] == ["sample", "recover"]
    assert broken.total("rl.sample.steps") == sum(
        logged["env_runners"]["num_env_steps_sampled"] for logged in broken.logged
    )


def test_each_trial_is_a_run_of_its_own(tuned: Run) -> None:
    ids = {str(point.attributes["rl.run.id"]) for point in tuned.capture.points("rl.loop.duration")}
    (launched,) = {str(point.attributes["rl.run.id"]) for point in tuned.capture.points("rl.run.status")}
    trials = sorted(name.removeprefix(f"{launched}.") for name in ids)
    assert f"trials {trials}" in tuned.output
    assert len({root.span.trace_id for root in tuned.loops}) == 4
    for name in ids:
        (point,) = tuned.capture.latest("rl.loop.duration", **{"rl.run.id": name})
        assert point.count == 2
        assert tuned.total("rl.checkpoint.step", **{"rl.run.id": name}) == 2
    assert tuned.capture.latest("rl.loop.duration", **{"rl.run.id": launched}) == []
    states = {str(p.attributes["rl.run.state"]): p.value for p in tuned.capture.latest("rl.run.status")}
    assert states["completed"] == 1
