"""The phases of a loop: for each word, the metric, span and counters that stand behind it.

The five of the proposal have a metric and a span of their own; any other phase shares `rl.phase.duration` and the
span `rl.phase`, told apart by `rl.phase.name`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv import spans
from rlotel.semconv.attributes import PhaseName, TokenType
from rlotel.semconv.types import Metric, Span

LOOP = PhaseName.LOOP.value
SAMPLE = PhaseName.SAMPLE.value
REWARD = PhaseName.REWARD.value
TRAIN = PhaseName.TRAIN.value
SYNC = PhaseName.SYNC.value
CHECKPOINT = PhaseName.CHECKPOINT.value
IDLE = PhaseName.IDLE.value

FLOPS = "flops"
MEMORY_BYTES = "memory_bytes"
BYTES = "bytes"

MODEL_PHASES = frozenset(
    {SAMPLE, TRAIN, PhaseName.LOGPROB.value, PhaseName.REF_LOGPROB.value, PhaseName.VALUE.value}
)
"""Phases in which models compute: the FLOPs of a loop are known only if those of all these are."""


@dataclass(frozen=True, eq=False)
class Word:
    """What one kind of phase is measured with."""

    duration: Metric
    span: Span
    counters: Mapping[str, tuple[Metric, Mapping[str, str]]] = field(default_factory=dict)
    """Keyword of `add()` to the counter it feeds, and with which attributes."""
    size: Metric | None = None
    """The histogram of the bytes it moves."""
    on_span: Mapping[str, str] = field(default_factory=dict)
    """Keyword of `add()` to the attribute of the span that tells its sum."""
    named: bool = False
    """Whether `rl.phase.name` tells this phase from others of the same word."""


def _tokens(kind: TokenType) -> tuple[Metric, Mapping[str, str]]:
    return m.SAMPLE_TOKENS, MappingProxyType({attr.TOKEN_TYPE.name: kind.value})


_PLAIN: Mapping[str, str] = MappingProxyType({})

WORDS: Mapping[str, Word] = {
    SAMPLE: Word(
        m.SAMPLE_DURATION,
        spans.SAMPLE,
        {
            "samples": (m.SAMPLE_SAMPLES, _PLAIN),
            "episodes": (m.SAMPLE_EPISODES, _PLAIN),
            "steps": (m.SAMPLE_STEPS, _PLAIN),
            "tokens": (m.SAMPLE_TOKENS, _PLAIN),
            "prompt_tokens": _tokens(TokenType.PROMPT),
            "completion_tokens": _tokens(TokenType.COMPLETION),
        },
        on_span={
            "samples": attr.SAMPLE_SAMPLES.name,
            "episodes": attr.SAMPLE_EPISODES.name,
            "tokens": attr.SAMPLE_TOKENS.name,
            "prompt_tokens": attr.SAMPLE_TOKENS.name,
            "completion_tokens": attr.SAMPLE_TOKENS.name,
        },
    ),
    REWARD: Word(m.REWARD_DURATION, spans.REWARD),
    TRAIN: Word(
        m.TRAIN_DURATION,
        spans.TRAIN,
        {"steps": (m.TRAIN_STEPS, _PLAIN), "tokens": (m.TRAIN_TOKENS, _PLAIN), FLOPS: (m.TRAIN_FLOPS, _PLAIN)},
        on_span={"steps": attr.TRAIN_STEPS.name, "tokens": attr.TRAIN_TOKENS.name},
    ),
    SYNC: Word(m.SYNC_DURATION, spans.SYNC, size=m.SYNC_SIZE, on_span={BYTES: attr.SYNC_BYTES.name}),
    CHECKPOINT: Word(m.CHECKPOINT_DURATION, spans.CHECKPOINT, size=m.CHECKPOINT_SIZE),
}
OTHER = Word(m.PHASE_DURATION, spans.PHASE, named=True)

LOOP_COUNTS: Mapping[str, frozenset[str]] = {
    SAMPLE: frozenset({FLOPS, MEMORY_BYTES, "truncated", "aborted", "step_seconds"})
}
"""Keywords of `add()` that no counter has: they only serve what is derived from a loop."""
ANY_LOOP_COUNTS = frozenset({FLOPS})
