"""The synchronous trainer: durations, counts and values are those of the run."""

import pytest

from rlotel.integrations.openrlhf.tables import GAUGES
from rlotel.integrations.tables import Gauge
from tests.frameworks.openrlhf.real.conftest import ROWS
from tests.frameworks.running import Run, phase, seconds

TIMERS = {"generation": "sample", "make_experience": "experience", "ppo_train": "train", "broadcast": "sync"}
"""OpenRLHF's timers and the phases that they are, of the process of the trainer."""
NUMBER = 4
"""Iterations."""


def own(run: Run, number: int) -> dict[str, float]:
    """Seconds of the phases of an iteration in the trainer's own process."""
    root = run.loops[number]
    found: dict[str, float] = {}
    for child in root.children:
        if child.span.resource == root.span.resource:
            found[phase(child.span)] = found.get(phase(child.span), 0.0) + seconds(child.span)
    return found


def logged(run: Run, kind: str = "step") -> list[dict[str, float]]:
    return [line["data"] for line in run.logged if line["kind"] == kind]


def test_durations_are_those_of_openrlhfs_timers(sync: Run) -> None:
    for timer, name in TIMERS.items():
        over = [data[f"timing/{timer}"] - own(sync, i)[name] for i, data in enumerate(logged(sync))]
        assert min(over) > -0.001, timer
        assert min(over) < 0.005, timer  # Ray's own part in it
        assert max(over) < 0.25, timer


def test_an_iteration_holds_all_that_openrlhf_times_and_the_evaluation_that_follows(sync: Run) -> None:
    for number, data in enumerate(logged(sync)):
        assert seconds(sync.loops[number].span) > data["timing/step_total"]
        assert ("evaluate" in own(sync, number)) == (number % 2 == 1)


def test_workers_say_how_long_they_took(sync: Run) -> None:
    for name in ("logprob", "ref_logprob"):
        at_work = sync.total("rl.worker.duration", **{"rl.phase.name": name})
        assert 0 <= at_work - sync.worked(name) < 0.2
        assert at_work < sync.total("rl.phase.duration", **{"rl.phase.name": name})
    # They are at it within the trainer's phase.
    spans = [span for span in sync.capture.spans() if phase(span) == "logprob"]
    assert {str(span.resource.get("ray.actor.class")) for span in spans} == {"PPOTrainer", "PolicyModelActor"}


def test_rewards_are_timed_where_they_are_given_and_not_those_of_an_evaluation(sync: Run) -> None:
    (point,) = sync.capture.latest("rl.reward.duration")
    assert point.count == NUMBER
    assert 0 < float(point.sum or 0) < sync.worked("reward")  # several at a time, and half of them to evaluate
    # Each evaluation asks for the rollouts of an iteration's prompts at a time.
    assert sync.observations("rl.worker.duration", **{"rl.phase.name": "evaluate"}) == NUMBER


def test_counts_are_those_of_the_rollouts(sync: Run) -> None:
    lengths = [data["rollout/response_length_mean"] * ROWS for data in logged(sync)]
    assert sync.total("rl.sample.samples") == sync.total("rl.sample.episodes") == NUMBER * ROWS
    assert sync.total("rl.sample.tokens", **{"rl.token.type": "completion"}) == pytest.approx(sum(lengths))
    assert sync.total("rl.sample.tokens", **{"rl.token.type": "prompt"}) == NUMBER * ROWS * len("1+1=")
    assert sync.total("rl.train.steps") == NUMBER * ROWS / 4
    assert sync.total("rl.train.tokens") == sync.total("rl.sample.tokens")


def test_values_are_those_that_were_logged(sync: Run) -> None:
    last = logged(sync)[-1]
    told = {key: gauge for key, gauge in GAUGES.items() if key in last}
    assert told.keys() >= {"policy_loss", "kl", "ppo_kl", "vllm_kl", "entropy_loss", "rollout/truncated_rate"}
    for key, gauge in told.items():
        assert isinstance(gauge, Gauge)
        (point,) = sync.capture.latest(gauge.metric, **gauge.attributes)
        assert point.value == pytest.approx(last[key]), key
    assert sync.gauge("rl.sample.staleness") == [0.0] * len(sync.gauge("rl.sample.staleness"))


def test_evaluations_have_scores_of_their_own(sync: Run) -> None:
    last = logged(sync, "scores")[-1]
    scores = {
        str(point.attributes["rl.evaluation.name"]): point.value
        for point in sync.capture.latest("rl.evaluation.score")
    }
    assert scores == {
        key.removeprefix("eval_"): pytest.approx(value) for key, value in last.items() if key != "eval_num_samples"
    }


def test_checkpoints_are_those_that_were_saved(sync: Run) -> None:
    saves = sync.total("rl.checkpoint.operations", **{"rl.checkpoint.operation": "save"})
    assert saves in (3, 4)  # two by their number, one or two as the best so far
    took = sync.total("rl.checkpoint.duration", **{"rl.checkpoint.operation": "save"})
    assert 0 <= took - sync.worked("save") < 0.1
    assert sync.gauge("rl.checkpoint.step")[-1] == NUMBER


def test_gpus_are_those_of_all_models(sync: Run) -> None:
    per_gpu, rate = sync.gauge("rl.tokens.rate_per_gpu")[-1], sync.gauge("rl.tokens.rate")[-1]
    assert rate / per_gpu == pytest.approx(3)  # the policy, the reference and an engine
