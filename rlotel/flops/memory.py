"""Bytes that decoding has to move from a GPU's memory: weights once a step, the KV cache once a token.

They are what `rl.sample.mbu` divides by the memory bandwidth. Prefill is bound by compute and is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlotel.flops.passes import causal_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlotel.flops.architecture import Architecture, Linear


def kv_bytes_per_token(architecture: Architecture, bytes_per_value: float = 2) -> float:
    """Bytes the KV cache of all layers keeps for one token (2 bytes a value: bf16)."""
    return sum(core.layers * core.cached for core in architecture.cores) * bytes_per_value


def weight_bytes_per_step(architecture: Architecture, batch: float, bytes_per_weight: float = 2) -> float:
    """Bytes of weights one decode step of `batch` sequences reads.

    Of a mixture's experts it reads those that at least one of the sequences is routed to, taking the routing
    as even: the most that can be known without watching the router.

    Raises:
        ValueError: `batch` is not above 0.
    """
    if not batch > 0:
        raise ValueError(f"a decode step needs a batch above 0, not {batch}")
    return sum(linear.weights * _share_read(linear, batch) for linear in architecture.linears) * bytes_per_weight


def decode_bytes(
    architecture: Architecture,
    prompts: Iterable[int],
    responses: Iterable[int],
    *,
    batch: float,
    bytes_per_weight: float = 2,
    bytes_per_value: float = 2,
) -> float:
    """Bytes that decoding these responses moves, over all replicas together.

    Args:
        architecture: From `read_config`.
        prompts: Tokens of each prompt.
        responses: Tokens of each response, in the same order.
        batch: Mean number of sequences decoded together by one replica of the model.
        bytes_per_weight: 2 for bf16, 1 for fp8.
        bytes_per_value: Of the KV cache.

    Raises:
        ValueError: `batch` is not above 0, or there are not as many responses as prompts.
    """
    pairs = list(zip(prompts, responses, strict=True))
    steps = [max(response - 1, 0) for _, response in pairs]
    weights = weight_bytes_per_step(architecture, batch, bytes_per_weight) * sum(steps) / batch
    cache = 0
    for core in architecture.cores:
        seen = sum(
            causal_pairs(prompt + step, core.window) - causal_pairs(prompt, core.window)
            for (prompt, _), step in zip(pairs, steps, strict=True)
        )
        cache += core.layers * core.cached * seen
    return weights + cache * bytes_per_value


def _share_read(linear: Linear, batch: float) -> float:
    """Expected share of the copies that at least one of `batch` tokens passes through."""
    untouched: float = (1 - linear.active / linear.copies) ** batch
    return 1 - untouched
