"""What a run of the demo came to: for a person, and as one JSON document."""

from __future__ import annotations

import json
import math
import shutil
import sys
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from rlotel.demo import amounts
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from rlotel.demo.run import Outcome
    from rlotel.demo.signals import Signals

_EXACT_MATCH = {attr.EVALUATION_NAME.name: "exact_match"}
_LABEL = 22
_WORTH_SAYING = 0.005
"""Shares of the time below it are left out."""


def print_summary(outcome: Outcome, console: Console) -> None:
    """Say how training went, where its time went, what was sent, and what to do next."""
    signals = outcome.signals()
    lines = [_headline(outcome), *_facts(outcome, signals), *_next(outcome)]
    console.print()
    for line in lines:
        # A path that is broken over two lines cannot be copied.
        console.print(line, soft_wrap=True)


def to_json(outcome: Outcome) -> str:
    """The same as JSON; what is unknown or not finite is null."""
    signals = outcome.signals()
    document: dict[str, Any] = {
        "run_id": outcome.run_id,
        "seed": outcome.options.seed,
        "seconds": outcome.seconds,
        "interrupted": outcome.interrupted,
        "iterations": {
            "planned": outcome.options.settings.iterations,
            "finished": [one.number for one in outcome.iterations],
        },
        "reward": [_finite(one.reward) for one in outcome.iterations],
        "policy_loss": [_finite(one.update.loss.policy) for one in outcome.iterations],
        "kl_divergence": [_finite(one.update.loss.kl_divergence) for one in outcome.iterations],
        "weights_sha256": outcome.weights,
        "endpoint": outcome.endpoint,
        "capture": None if outcome.capture is None else str(outcome.capture),
        "received": None if signals is None else _received(signals),
    }
    return json.dumps(document, indent=2)


def _received(signals: Signals) -> dict[str, Any]:
    gauges = (m.TOKENS_RATE, m.SAMPLES_RATE, m.LOOP_IDLE_RATIO, m.TRAIN_MFU, m.LOOP_MFU, m.CHECKPOINT_STEP)
    return {
        "points": signals.points,
        "spans": signals.spans,
        "traces": len(signals.traces),
        "metrics": signals.metrics(),
        "phases": {
            phase.name: {
                "share": phase.share,
                "p50_seconds": phase.median,
                "last_seconds": phase.last,
                "errors": phase.errors,
            }
            for phase in signals.phases()
        },
        "last": {metric.name: value for metric in gauges if (value := signals.value(metric)) is not None},
        "nonfinite": signals.totals(m.TRAIN_NONFINITE, attr.VALUE_NAME),
        "refused": signals.totals(m.RLOTEL_VALUES_REFUSED, attr.RLOTEL_REFUSAL_REASON),
        "exact_match": _solved(signals),
        "restarts": signals.total(m.RESTARTS),
    }


def _headline(outcome: Outcome) -> Text:
    count, planned = len(outcome.iterations), outcome.options.settings.iterations
    how = "Ended by Ctrl-C" if outcome.interrupted else "Done"
    text = Text.assemble((how, "bold"), f": {count} iterations in {amounts.took(outcome.seconds)}")
    if count != planned:
        text.append(f" ({planned} were planned)")
    rewards = [one.reward for one in outcome.iterations if math.isfinite(one.reward)]
    if rewards:
        text.append(f"; the mean reward went from {rewards[0]:.2f} to ").append(f"{rewards[-1]:.2f}", "bold green")
    return text.append(".")


def _facts(outcome: Outcome, signals: Signals | None) -> Iterator[Text]:
    if signals is None:
        yield _fact("telemetry for", outcome.endpoint)
    elif not signals.points:
        yield _fact(
            "nothing arrived", "is rlotel or OpenTelemetry switched off by a variable? See `rlotel doctor`."
        )
    else:
        phases = sorted(signals.phases(), key=lambda phase: phase.share or 0.0, reverse=True)
        shares = [f"{one.name} {amounts.share(one.share)}" for one in phases if (one.share or 0) >= _WORTH_SAYING]
        yield _fact("where the time went", " · ".join(shares))
        yield _fact(
            "what was received",
            f"{signals.points:,} points of {len(signals.metrics())} metrics, "
            f"{signals.spans:,} spans in {len(signals.traces):,} traces",
        )
        solved = _solved(signals)
        if solved is not None:
            yield _fact("new problems solved", amounts.share(solved))
        for label, what in zip_longest(["what went wrong"], _wrong(signals) or ["nothing"], fillvalue=""):
            yield _fact(label, what)
        yield _fact("capture", str(outcome.capture))


def _wrong(signals: Signals) -> list[str]:
    restarts = signals.total(m.RESTARTS)
    return [
        *(
            f"{phase.name} failed: {error.rpartition('.')[2]}"
            for phase in signals.phases()
            for error in phase.errors
        ),
        *(f"{name} was not finite" for name in signals.totals(m.TRAIN_NONFINITE, attr.VALUE_NAME)),
        *([f"training went back to a checkpoint, {restarts:.0f}×"] if restarts else []),
    ]


def _solved(signals: Signals) -> float | None:
    """The share of new problems that the last evaluation saw solved, however long that was ago."""
    known = [value for value in signals.history(m.EVALUATION_SCORE, **_EXACT_MATCH) if value is not None]
    return known[-1] if known else None


def _next(outcome: Outcome) -> Iterator[Text]:
    yield Text("\nNext", "bold")
    if outcome.capture is not None:
        yield _fact("judge the names", f"{_command()} semconv check {outcome.capture}")
    yield _fact("look at this machine", f"{_command()} doctor")
    yield _fact("in your own training", "import rlotel; rlotel.instrument()")


def _command() -> str:
    """How the command is called from here; after `make demo` it is in an environment that is not on the path."""
    called = sys.argv[0]
    return called if shutil.which("rlotel") is None and Path(called).name == "rlotel" else "rlotel"


def _fact(label: str, what: str) -> Text:
    return Text.assemble((f"  {label:<{_LABEL}}", "dim"), what)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
