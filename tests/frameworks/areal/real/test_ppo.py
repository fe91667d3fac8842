"""PPO with AReaL's own trainer: durations, counts and values are those that AReaL itself timed and logged."""

import json
import statistics
from collections import defaultdict
from typing import Any

import pytest

from rlotel.capture import SpanNode
from rlotel.integrations.areal.tables import OCCASIONAL, TIMERS
from tests.frameworks.areal.real.conftest import ROLLOUTS, UPDATES
from tests.frameworks.running import Run, phase, seconds

CLOSE, LOOSE = 0.001, 0.05
"""Seconds that ours may differ from theirs: in the iteration that nothing interrupted, and in any."""


def own(root: SpanNode) -> list[Any]:
    """The phases of the loop itself, without rollouts and their evaluation that are made beside it."""
    spans = [child.span for child in root.children if child.span.resource == root.span.resource]
    kept = [span for span in spans if span.attributes.get("rl.sample.kind") != "generate"]
    evaluations = [span for span in kept if phase(span) == "evaluate"]
    longest = max(evaluations, key=seconds, default=None)
    return [span for span in kept if phase(span) != "evaluate" or span is longest]


def differences(run: Run) -> dict[str, list[float]]:
    """By phase and role, how much longer ours was than AReaL's timers in each iteration that had it."""
    found: dict[str, list[float]] = defaultdict(list)
    for root, line in zip(run.loops, run.logged, strict=True):
        ours: dict[str, float] = defaultdict(float)
        for span in own(root):
            ours[f"{phase(span)}/{span.attributes.get('rl.role', '')!s}"] += seconds(span)
        theirs: dict[str, float] = defaultdict(float)
        for name, timed in {**TIMERS, **OCCASIONAL}.items():
            key = f"{timed.phase}/{timed.role or ''}"
            if (value := line["data"].get(f"timeperf/{name}")) is not None and key in ours:
                theirs[key] += value
        assert ours.keys() == theirs.keys()
        for key, value in ours.items():
            found[key].append(value - theirs[key])
    return found


def test_durations_are_those_of_areals_own_timers(seen: Run) -> None:
    found = differences(seen)
    assert len(found) == 11
    for name, values in found.items():
        assert min(map(abs, values)) < CLOSE, (name, values)
        assert max(map(abs, values)) < LOOSE, (name, values)


def data(run: Run) -> list[dict[str, float]]:
    return [line["data"] for line in run.logged]


def test_rollouts_tokens_and_steps_are_counted_exactly(seen: Run) -> None:
    logged = data(seen)
    assert seen.total("rl.sample.samples") == sum(line["ppo_actor/n_seqs"] for line in logged) == 4 * ROLLOUTS
    assert seen.total("rl.sample.episodes") == sum(line["rollout/reward__count"] for line in logged)
    generated = sum(line["ppo_actor/n_valid_tokens"] for line in logged)
    prompts = sum(round(ROLLOUTS * line["ppo_actor/prompt_len/avg"]) for line in logged)
    assert seen.total("rl.sample.tokens", **{"rl.token.type": "completion"}) == generated
    assert seen.total("rl.sample.tokens", **{"rl.token.type": "prompt"}) == prompts
    for role in ("actor", "critic"):
        assert seen.total("rl.train.steps", **{"rl.role": role}) == 4 * UPDATES
        assert seen.total("rl.train.tokens", **{"rl.role": role}) == prompts + generated


GAUGES = {
    ("rl.environment.reward.mean",): ("ppo_actor/task_reward/avg", 1.0),
    ("rl.environment.episode.turns.mean",): ("rollout/num_turns", 1.0),
    ("rl.sample.staleness",): ("ppo_actor/update/version_stats/sample_staleness_theta_avg", 1.0),
    ("rl.entropy",): ("ppo_actor/update/entropy/avg", 1.0),
    ("rl.train.loss", "rl.loss.type", "policy"): ("ppo_actor/update/actor_loss/avg", 1.0),
    ("rl.train.loss", "rl.loss.type", "value"): ("ppo_critic/critic_loss/avg", 1.0),
    ("rl.grad_norm", "rl.role", "actor"): ("ppo_actor/update/grad_norm", 1.0),
    ("rl.grad_norm", "rl.role", "critic"): ("ppo_critic/grad_norm", 1.0),
    ("rl.kl.divergence", "rl.kl.reference", "old_policy"): ("ppo_actor/update/approx_kl/avg", -1.0),
    ("rl.kl.divergence", "rl.kl.reference", "reference"): ("ppo_actor/kl_rewards/avg", -10.0),
    ("rl.kl.divergence", "rl.kl.reference", "rollout"): ("ppo_actor/update/compute_logp/kl_div_direct/avg", 1.0),
    ("rl.evaluation.score", "rl.evaluation.name", "reward"): ("eval-rollout/reward", 1.0),
}


@pytest.mark.parametrize("gauge", GAUGES, ids="/".join)
def test_gauges_are_what_was_logged_last(seen: Run, gauge: tuple[str, ...]) -> None:
    key, scale = GAUGES[gauge]
    last = [line[key] for line in data(seen) if key in line][-1]
    name, *attribute = gauge
    match = {attribute[0]: attribute[1]} if attribute else {}
    assert seen.gauge(name, **match)[-1] == pytest.approx(scale * last)


def test_divergences_are_of_the_sign_that_they_must_have_on_average(seen: Run) -> None:
    rollout = statistics.fmean(line["ppo_actor/update/compute_logp/kl_div_dual/avg"] for line in data(seen))
    assert rollout > 0
    assert seen.gauge("rl.kl.divergence", **{"rl.kl.reference": "rollout"})[-1] > 0


def test_what_was_not_due_is_no_phase(seen: Run) -> None:
    evaluated = [
        root.span.attributes["rl.loop.iteration"]
        for root in seen.loops
        if any(phase(span) == "evaluate" for span in own(root))
    ]
    assert evaluated == [2, 4]
    assert seen.observations("rl.phase.duration", **{"rl.phase.name": "evaluate"}) == 2


def test_a_checkpoint_is_claimed_where_there_is_one(seen: Run) -> None:
    (saved,) = (seen.folder / "files").rglob("step_info.json")
    assert seen.gauge("rl.checkpoint.step")[-1] == json.loads(saved.read_text())["global_step"] + 1 == 4


def test_a_recovered_run_goes_on_where_it_was(resumed: Run) -> None:
    assert [root.span.attributes["rl.loop.iteration"] for root in resumed.loops] == [5, 6]
    assert [line["global_step"] for line in resumed.logged] == [4, 5]
    assert resumed.total("rl.checkpoint.operations", **{"rl.checkpoint.operation": "restore"}) == 1
    assert resumed.total("rl.sample.samples") == 2 * ROLLOUTS
    assert resumed.gauge("rl.checkpoint.step")[-1] == 6


def test_a_reward_that_fails_is_told_where_it_fails_and_its_rollouts_are_not_trained_on(broken: Run) -> None:
    rewards = [span for span in broken.capture.spans("rl.reward") if span.attributes.get("error.type")]
    assert {span.attributes["error.type"] for span in rewards} == {"ValueError"}
    assert broken.observations("rl.reward.duration", **{"error.type": "ValueError"}) >= 1
    assert "no answer in it" in broken.output
    assert broken.total("rl.sample.samples") == 2 * ROLLOUTS


def test_an_optimizer_that_fails_ends_the_run_as_it_would_have(broken: Run) -> None:
    assert "RuntimeError: the optimizer is out of memory" in broken.output
    assert [root.span.attributes.get("error.type") for root in broken.loops] == [None, None, "RuntimeError"]
    failed = [span for span in broken.capture.spans("rl.train") if span.attributes.get("error.type")]
    assert [span.attributes["error.type"] for span in failed] == ["RuntimeError"]
    assert broken.total("rl.train.steps", **{"rl.role": "actor"}) == 2 * UPDATES
    states = {point.attributes["rl.run.state"]: point.value for point in broken.capture.latest("rl.run.status")}
    assert states["failed"] == 1
