"""What real runs of AReaL did is reported as what it was: every timer, every iteration, every number."""

from collections import defaultdict

import pytest

from rlotel.integrations.areal.tables import OCCASIONAL, TIMERS
from rlotel.otlp_records import SpanRecord
from tests.frameworks.running import phase

from .conftest import Areal, settings
from .replay import Event, Replay, Trace

MODELS = {"critic": object(), "ref": object(), "actor__kl_ctl": 0.1, "recover__mode": "on"}
RUNS = {"1.0.4-grpo": {}, "1.0.4-ppo": MODELS, "1.0.4-recovered": MODELS}


def name(span: SpanRecord) -> str:
    return f"{phase(span)}/{span.attributes.get('rl.role', '')!s}"


def timed(trace: Trace) -> list[dict[str, float]]:
    """Seconds that AReaL timed of each phase, in each iteration; of what was not due, none."""
    found: list[dict[str, float]] = [defaultdict(float)]
    started: Event | None = None
    due = False
    for event in trace.events:
        if event.kind == "start":
            started, due = event, event.name not in OCCASIONAL
        elif event.name == "check" and event.kind == "return":
            due = due or bool(event.data["result"])
        elif event.kind == "stop" and due and started is not None:
            meant = TIMERS.get(event.name) or OCCASIONAL[event.name]
            found[-1][f"{meant.phase}/{meant.role or ''}"] += event.at - started.at
        elif (event.kind, event.name) == ("return", "commit"):
            found.append(defaultdict(float))
    return [dict(seconds) for seconds in found[:-1]]


@pytest.mark.parametrize("run", RUNS)
def test_each_phase_takes_as_long_as_areal_says(areal: Areal, run: str) -> None:
    trace = Trace(run)
    Replay(areal, trace, settings(**RUNS[run]))
    loops = areal.telemetry.spans("rl.loop")
    assert [loop.attributes["rl.loop.iteration"] for loop in loops] == [
        commit["global_step"] + 1 for commit in trace.commits
    ]
    for loop, expected in zip(loops, timed(trace), strict=True):
        ours: dict[str, float] = defaultdict(float)
        for span in areal.telemetry.spans():
            if span.trace_id == loop.trace_id and span.span_id != loop.span_id:
                ours[name(span)] += (span.end_ns - span.start_ns) / 1e9
        # AReaL looks up whether something is due within its timers.
        assert ours == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("run", RUNS)
def test_an_iteration_goes_from_one_commit_to_the_next(areal: Areal, run: str) -> None:
    trace = Trace(run)
    Replay(areal, trace, settings(**RUNS[run]))
    ends = [event.at for event in trace.events if (event.kind, event.name) == ("return", "commit")]
    began = next(event.at for event in trace.events if (event.kind, event.name) == ("call", "train"))
    lengths = [end - start for start, end in zip([began, *ends], ends, strict=False)]
    spans = [(loop.end_ns - loop.start_ns) / 1e9 for loop in areal.telemetry.spans("rl.loop")]
    assert spans == pytest.approx(lengths, abs=1e-6)


@pytest.mark.parametrize("run", RUNS)
def test_counts_are_those_that_were_committed(areal: Areal, run: str) -> None:
    trace = Trace(run)
    Replay(areal, trace, settings(**RUNS[run]))
    data = [commit["data"] for commit in trace.commits]
    rows = sum(line["ppo_actor/n_seqs"] for line in data)
    generated = sum(line["ppo_actor/n_valid_tokens"] for line in data)
    prompts = sum(line["ppo_actor/n_seqs"] * line["ppo_actor/prompt_len/avg"] for line in data)
    telemetry = areal.telemetry
    assert telemetry.value("rl.sample.samples") == rows == 4 * len(data)
    assert telemetry.value("rl.sample.episodes") == sum(line["rollout/reward__count"] for line in data)
    assert telemetry.value("rl.sample.tokens", **{"rl.token.type": "completion"}) == generated
    assert telemetry.value("rl.sample.tokens", **{"rl.token.type": "prompt"}) == pytest.approx(prompts, abs=0.1)
    assert telemetry.value("rl.train.steps", **{"rl.role": "actor"}) == 2 * len(data)
    tokens = telemetry.value("rl.train.tokens", **{"rl.role": "actor"})
    assert tokens == pytest.approx(prompts + generated, abs=0.1)
    padded = sum(line["ppo_actor/n_tokens"] for line in data)
    assert tokens is not None
    assert tokens < padded


def test_gauges_are_what_was_committed_last(areal: Areal) -> None:
    trace = Trace("1.0.4-ppo")
    Replay(areal, trace, settings(**MODELS))
    last = trace.commits[-1]["data"]
    update = "ppo_actor/update/"
    assert {
        (
            point.name,
            *(str(point.attributes[key]) for key in ("rl.role", "rl.loss.type") if key in point.attributes),
        ): (point.value)
        for point in areal.telemetry.points()
        if point.name in {"rl.train.loss", "rl.grad_norm", "rl.learning_rate", "rl.train.clip.ratio"}
    } == pytest.approx(
        {
            ("rl.train.loss", "policy"): last[f"{update}actor_loss/avg"],
            ("rl.train.loss", "value"): last["ppo_critic/critic_loss/avg"],
            ("rl.grad_norm", "actor"): last[f"{update}grad_norm"],
            ("rl.grad_norm", "critic"): last["ppo_critic/grad_norm"],
            ("rl.learning_rate", "actor"): last[f"{update}lr"],
            ("rl.learning_rate", "critic"): last["ppo_critic/lr"],
            ("rl.train.clip.ratio", "actor"): last[f"{update}clip_ratio/avg"],
            ("rl.train.clip.ratio", "critic"): last["ppo_critic/clip_ratio/avg"],
        }
    )
    telemetry = areal.telemetry
    assert telemetry.value("rl.environment.reward.mean") == last["ppo_actor/task_reward/avg"]
    assert telemetry.value("rl.environment.episode.turns.mean") == last["rollout/num_turns"]
    assert telemetry.value("rl.environment.episode.length.mean") == last["ppo_actor/n_valid_tokens"] / 4
    assert telemetry.value("rl.entropy") == last[f"{update}entropy/avg"]
    assert telemetry.value("rl.sample.staleness") == last[f"{update}version_stats/sample_staleness_theta_avg"]
    divergences = {
        point.attributes["rl.kl.reference"]: point.value for point in telemetry.points("rl.kl.divergence")
    }
    assert divergences == pytest.approx(
        {
            "old_policy": -last[f"{update}approx_kl/avg"],
            "rollout": last[f"{update}compute_logp/kl_div_direct/avg"],
            "reference": -last["ppo_actor/kl_rewards/avg"] / 0.1,
        }
    )


def test_a_recovered_run_goes_on_where_it_was(areal: Areal) -> None:
    Replay(areal, Trace("1.0.4-recovered"), settings(**MODELS))
    telemetry = areal.telemetry
    assert [span.attributes["rl.loop.iteration"] for span in telemetry.spans("rl.loop")] == [5, 6]
    restores = telemetry.spans("rl.checkpoint", **{"rl.checkpoint.operation": "restore"})
    assert [span.parent_id in (None, "") for span in restores] == [True]
    assert telemetry.value("rl.checkpoint.operations", **{"rl.checkpoint.operation": "restore"}) == 1
    assert telemetry.value("rl.checkpoint.step") == 6
