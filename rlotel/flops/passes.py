"""Model FLOPs of forward, training and generation passes over sequences of given lengths.

A matrix product of m×k by k×n is 2·m·k·n FLOP; nothing else is counted. Attention is counted by the
(query, key) pairs of each sequence, so packing, padding and order make no difference: only real lengths
enter. Recomputation is not counted, that is what makes it model FLOPs. All results are exact integers.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rlotel.flops.architecture import Architecture
    from rlotel.flops.lora import Lora

Convention = Literal["causal", "full"]
"""Which pairs attention counts: `causal` those a causal mask (and a window) leaves, `full` all s² of them, as
PaLM's appendix B, torchtitan and prime-rl publish it."""


@dataclass(frozen=True)
class Flops:
    """FLOP by term; terms add up to `total`."""

    attention_projections: int = 0
    attention_core: int = 0
    mlp: int = 0
    router: int = 0
    lm_head: int = 0
    adapters: int = 0

    @property
    def total(self) -> int:
        """FLOP of all terms."""
        return sum(getattr(self, term.name) for term in fields(self))

    def __add__(self, other: Flops) -> Flops:
        """Add term by term."""
        return Flops(*(getattr(self, term.name) + getattr(other, term.name) for term in fields(self)))

    def __mul__(self, times: int) -> Flops:
        """Multiply every term."""
        return Flops(*(getattr(self, term.name) * times for term in fields(self)))


def forward_flops(
    architecture: Architecture,
    lengths: Iterable[int],
    *,
    logits: int | None = None,
    convention: Convention = "causal",
    lora: Lora | None = None,
) -> Flops:
    """Count one forward pass, as for log-probabilities, a reference or a reward model.

    Args:
        architecture: From `read_config`.
        lengths: Tokens of each sequence, padding excluded; a packed row is the lengths of its sequences.
        logits: Positions the LM head is applied to; None: every token. 0 for a critic or reward model, whose
            head of width 1 is nothing beside the rest.
        convention: See `Convention`.
        lora: Unmerged adapters.

    Raises:
        ValueError: A negative length, or more logits than tokens.
    """
    _check(convention)
    sizes = _sizes(lengths)
    tokens = sum(sizes)
    if logits is not None and not 0 <= logits <= tokens:
        raise ValueError(f"logits is {logits}, but there are {tokens} tokens")
    return _products(architecture, tokens, tokens if logits is None else logits, lora) + _attention(
        architecture, lambda window: sum(_pairs(size, window, convention) for size in sizes)
    )


def train_flops(
    architecture: Architecture,
    lengths: Iterable[int],
    *,
    logits: int | None = None,
    convention: Convention = "causal",
    lora: Lora | None = None,
) -> Flops:
    """Count forward and backward of one pass over the sequences: three forwards.

    With `lora` the model's own matrices are frozen and count twice, adapters and attention three times.
    Arguments and errors are those of `forward_flops`.
    """
    forward = forward_flops(architecture, lengths, logits=logits, convention=convention, lora=lora)
    if lora is None:
        return forward * 3
    thrice = Flops(attention_core=forward.attention_core, adapters=forward.adapters)
    return forward * 2 + thrice


def prefill_flops(
    architecture: Architecture,
    prompts: Iterable[int],
    *,
    cached: Iterable[int] | None = None,
    lora: Lora | None = None,
) -> Flops:
    """Count the reading of prompts, with logits for the last token of each.

    Args:
        architecture: From `read_config`.
        prompts: Tokens of each prompt, 1 or more.
        cached: Leading tokens of each prompt that a prefix cache held, as for the siblings of a GRPO group.
            The last token of a prompt is always computed, since its logits are needed.
        lora: Unmerged adapters.

    Raises:
        ValueError: A prompt without a token, or more cached tokens than the prompt has.
    """
    ends = _sizes(prompts)
    held = [0] * len(ends) if cached is None else _sizes(cached)
    if len(held) != len(ends):
        raise ValueError(f"{len(ends)} prompts but {len(held)} numbers of cached tokens")
    for end, start in zip(ends, held, strict=True):
        if end < 1 or start > end:
            raise ValueError(f"a prompt of {end} tokens, {start} of them cached")
    starts = [min(start, end - 1) for start, end in zip(held, ends, strict=True)]
    return _continuation(architecture, starts, ends, len(ends), lora)


def decode_flops(
    architecture: Architecture, prompts: Iterable[int], responses: Iterable[int], *, lora: Lora | None = None
) -> Flops:
    """Count the forwards, one token each, that follow the prefill.

    The first response token comes out of the prefill and the last is never fed back, so a response of n
    tokens takes n - 1 forwards. Rejected speculative tokens are not model FLOPs and have no place here.

    Args:
        architecture: From `read_config`.
        prompts: Tokens of each prompt.
        responses: Tokens of each response, in the same order.
        lora: Unmerged adapters.

    Raises:
        ValueError: Negative lengths, or not as many responses as prompts.
    """
    starts, answers = _sizes(prompts), _sizes(responses)
    if len(starts) != len(answers):
        raise ValueError(f"{len(starts)} prompts but {len(answers)} responses")
    steps = [max(answer - 1, 0) for answer in answers]
    ends = [start + step for start, step in zip(starts, steps, strict=True)]
    return _continuation(architecture, starts, ends, sum(steps), lora)


def generation_flops(
    architecture: Architecture,
    prompts: Iterable[int],
    responses: Iterable[int],
    *,
    cached: Iterable[int] | None = None,
    lora: Lora | None = None,
) -> Flops:
    """Count prefill and decode; arguments and errors are theirs.

    It equals one causal forward over prompt + response - 1 tokens with logits for the response. An empty
    response counts as the prefill of its prompt.
    """
    starts = _sizes(prompts)
    prefill = prefill_flops(architecture, starts, cached=cached, lora=lora)
    return prefill + decode_flops(architecture, starts, responses, lora=lora)


def causal_pairs(length: int, window: int | None = None) -> int:
    """Count the (query, key) pairs of a causal sequence; a token sees `window` tokens, itself included."""
    if window is None or window >= length:
        return length * (length + 1) // 2
    return window * (window + 1) // 2 + (length - window) * window


def _pairs(length: int, window: int | None, convention: Convention) -> int:
    return causal_pairs(length, window) if convention == "causal" else length * length


def _continuation(
    architecture: Architecture, starts: Sequence[int], ends: Sequence[int], logits: int, lora: Lora | None
) -> Flops:
    """A causal forward over the tokens from `starts` to `ends`, those before them in the KV cache."""

    def pairs(window: int | None) -> int:
        return sum(
            causal_pairs(end, window) - causal_pairs(start, window)
            for start, end in zip(starts, ends, strict=True)
        )

    return _products(architecture, sum(ends) - sum(starts), logits, lora) + _attention(architecture, pairs)


def _products(architecture: Architecture, tokens: int, logits: int, lora: Lora | None) -> Flops:
    return Flops(
        attention_projections=2 * tokens * architecture.weights_of("attention_projections"),
        mlp=2 * tokens * architecture.weights_of("mlp"),
        router=2 * tokens * architecture.weights_of("router"),
        lm_head=2 * logits * architecture.weights_of("lm_head"),
        adapters=0 if lora is None else 2 * tokens * lora.active_weights(architecture),
    )


def _attention(architecture: Architecture, pairs: Callable[[int | None], int]) -> Flops:
    """The attention cores, given the pairs that a window leaves."""
    return Flops(
        attention_core=sum(
            2 * core.layers * core.heads * (core.qk_dim + core.v_dim) * pairs(core.window)
            for core in architecture.cores
        )
    )


def _check(convention: str) -> None:
    if convention not in ("causal", "full"):
        raise ValueError(f"convention is {convention!r}, not causal or full")


def _sizes(lengths: Iterable[int]) -> list[int]:
    sizes = [int(length) for length in lengths]
    if any(size < 0 for size in sizes):
        raise ValueError("a sequence cannot have fewer than 0 tokens")
    return sizes
