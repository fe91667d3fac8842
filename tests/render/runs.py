"""Runs that rlotel really reported, hours of a clock that moves only when told to: healthy, and each ill once."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import rlotel
from rlotel.capture import Point
from rlotel.otlp_records import Attributes
from rlotel.semconv import attributes, metrics
from rlotel.testing import Telemetry, captured

MINUTE = 60.0
COLLECT_S = 240
END_S = 250 * MINUTE
ILL_FROM = 12
"""The iteration from which on something is wrong."""
_FLOPS = 8 * 1e14 * 40


@dataclass(frozen=True)
class Iteration:
    """One iteration of six minutes: how long its phases take, and what it reports."""

    sample: float = 2 * MINUTE
    wait: float = 0.5 * MINUTE
    reward: float = 0.5 * MINUTE
    train: float = 2 * MINUTE
    sync: float = 0.25 * MINUTE
    checkpoint: float = 0.25 * MINUTE
    between: float = 0.5 * MINUTE
    """Seconds of the loop in which no phase is open."""
    before: float = 0.0
    """Seconds before the loop begins."""
    loss: float = 0.4
    entropy: float = 1.2
    kl: float = 0.02
    grad_norm: float = 0.5
    truncated: int = 20
    zero_variance: float = 0.2
    flops: float = _FLOPS
    saves: bool = True
    fails: str = ""
    """The phase, or `loop`, that raises."""
    killed: bool = False
    """Whether the process is killed in the middle of it."""


class _Planned(Exception):
    """What a phase that is meant to fail raises."""


class _Killed(Exception):
    """Ends a run without a word."""


class Run:
    """One run, whose telemetry is collected every four minutes."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self.now_s = 0.0
        self.points: list[Point] = []

    def iterate(self, number: int, one: Iteration) -> None:
        """One iteration."""
        self._pass(one.before)
        with suppress(_Planned), rlotel.loop(iteration=number):
            self._phase(rlotel.sample(kind="wait"), one.wait, one, "wait")
            with rlotel.sample(batch_size=512) as sample:
                self._pass(one.sample)
                sample.add(samples=512, episodes=512, prompt_tokens=4e4, completion_tokens=4e5)
                sample.add(steps=2048, step_seconds=700, truncated=one.truncated, aborted=2, flops=one.flops / 3)
                sample.set(episode_length=800, episode_turns=4, zero_variance_ratio=one.zero_variance, staleness=1)
                self._fail(one, "sample")
            with rlotel.reward(sandbox="gke-agent-sandbox") as reward:
                self._pass(one.reward)
                self._fail(one, "reward")
                reward.set(reward=0.3 + number / 100)
            self._phase(rlotel.phase("logprob"), 0.0, one, "logprob", flops=one.flops / 6)
            with rlotel.train(batch_size=512) as train:
                self._pass(one.train)
                self._fail(one, "train")
                train.add(steps=4, tokens=4.4e5, flops=one.flops)
                train.loss(policy=one.loss, kl_divergence=one.kl)
                train.set(entropy=one.entropy, grad_norm=one.grad_norm, kl_divergence=one.kl)
                train.set(learning_rate=1e-6, clip_ratio=0.02)
            self._phase(rlotel.sync(source="learner", destination="vllm"), one.sync, one, "sync", bytes=16e9)
            if one.saves:
                saving = rlotel.checkpoint("save", tier="object_storage", step=number)
                self._phase(saving, one.checkpoint, one, "checkpoint", bytes=32e9)
            with rlotel.phase("evaluate") as evaluate:
                evaluate.score("gsm8k", 0.5)
            self._pass(one.between)
            self._fail(one, "loop")

    def _phase(self, phase: Any, seconds: float, one: Iteration, name: str, **amounts: float) -> None:
        with phase as opened:
            self._pass(seconds)
            self._fail(one, name)
            if amounts:
                opened.add(**amounts)

    def _fail(self, one: Iteration, name: str) -> None:
        if one.killed and name == "train":
            raise _Killed
        if one.fails == name:
            raise _Planned

    def _pass(self, seconds: float) -> None:
        end = min(self.now_s + seconds, END_S)
        while self.now_s < end:
            step = min(end, (self.now_s // COLLECT_S + 1) * COLLECT_S) - self.now_s
            self._telemetry.clock.advance(step)
            self.now_s += step
            if self.now_s % COLLECT_S == 0:
                self._telemetry._spans.clear()  # every look would encode all of them again
                self.points += [
                    replace(point, time_ns=round(self.now_s * 1e9)) for point in self._telemetry.points()
                ]


def run(name: str, ill: Callable[[int], Iteration]) -> list[Point]:
    """What a run reported; from `ILL_FROM` on its iterations are what `ill` says."""
    settings: dict[str, Any] = {
        "algorithm": "GRPO",
        "model": "Qwen/Qwen3-8B",
        "environment": "gsm8k",
        "gpus": 8,
        "peak_flops": 1e15,
    }
    with captured(run_id=name, **settings) as telemetry:
        recorded = Run(telemetry)
        # What finds something in real runs (an integration, the cross-check of MFU) is not part of these.
        finding = {attributes.FINDING_NAME.name: "mfu_mismatch"}
        telemetry.session.recorder.instruments.add(metrics.FINDINGS, 1, finding)
        with rlotel.loop(iteration=0) as loop:
            loop.add(samples=1)  # a mistake: contained, and counted as an error inside rlotel
        telemetry.errors.clear()
        with suppress(_Killed):
            number = 0
            while recorded.now_s < END_S:
                recorded.iterate(number, ill(number - ILL_FROM) if number >= ILL_FROM else Iteration())
                number += 1
    resource: Attributes = {"service.name": "rl-training", "service.instance.id": name}
    return [replace(point, resource=resource) for point in recorded.points]


def _always(**changes: Any) -> Callable[[int], Iteration]:
    return lambda _number: Iteration(**changes)


def _once(**changes: Any) -> Callable[[int], Iteration]:
    return lambda number: Iteration(**changes) if number == 0 else Iteration()


HANG = 130 * MINUTE
RUNS: dict[str, tuple[Callable[[int], Iteration], set[str]]] = {
    "healthy": (_always(), set()),
    "clip ratio and gradients of zero": (_always(grad_norm=0.0, kl=0.0), set()),
    "killed": (_once(killed=True), {"RLTelemetrySilent"}),
    "verifier hangs": (_once(reward=HANG), {"RLNoProgress", "RLPhaseStuck", "RLIterationsSlower"}),
    "hangs between iterations": (_once(before=HANG), {"RLNoProgress"}),
    "checkpoint hangs": (_once(checkpoint=HANG), {"RLNoProgress", "RLCheckpointStuck", "RLIterationsSlower"}),
    "loss is not a number": (_once(loss=math.nan), {"RLNonFinite"}),
    "update fails": (_once(fails="train"), {"RLPhaseFailed"}),
    "verifier fails": (_once(fails="reward"), {"RLRewardFailing"}),
    "weight sync fails": (_once(fails="sync"), {"RLWeightSyncFailing"}),
    "checkpoint fails": (_once(fails="checkpoint"), {"RLCheckpointFailing"}),
    "fails outside of phases": (_once(fails="loop"), {"RLIterationFailed"}),
    "no checkpoint any more": (_always(saves=False), {"RLCheckpointTooOld"}),
    "slower": (_always(sample=6 * MINUTE), {"RLIterationsSlower", "RLMFUDropped"}),
    "slow weight sync": (_always(sync=1.5 * MINUTE), {"RLSyncShareGrown"}),
    "waiting for rollouts": (
        _always(wait=4 * MINUTE, sample=0.5 * MINUTE, reward=0.0, between=0.0),
        {"RLIdleShareHigh"},
    ),
    "less arithmetic": (_always(flops=_FLOPS / 2), {"RLMFUDropped"}),
    "entropy collapses": (lambda number: Iteration(entropy=max(0.05, 1.2 - 0.2 * number)), {"RLEntropyCollapse"}),
    "entropy explodes": (_always(entropy=3.0), {"RLEntropyRise"}),
    "KL spike": (_always(kl=0.9), {"RLKLSpike"}),
    "gradient spike": (_once(grad_norm=2955012562.8), {"RLGradNormSpike"}),
    "truncated": (_always(truncated=300), {"RLTruncationHigh"}),
    "groups with equal rewards": (_always(zero_variance=1.0), {"RLZeroVarianceGroups"}),
}
"""Each run, and the alerts that have to fire for it: these and no others."""
