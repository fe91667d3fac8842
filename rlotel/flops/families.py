"""The model families whose matrices are known, by the `model_type` of their Hugging Face config.

A row holds what the modelling code of the family fixes and the config does not say, checked against the
parameters and the matrix products of transformers' own models.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Sliding = Literal["never", "every_layer", "all_but_each_nth", "if_switched_on", "from_layer_if_switched_on"]

_QKV = frozenset({"q_proj", "k_proj", "v_proj"})
_QKVO = _QKV | {"o_proj"}


@dataclass(frozen=True)
class Family:
    """What the modelling code of a family fixes."""

    moe: bool = False
    mla: bool = False
    """Multi-head latent attention: queries and keys through low-rank matrices."""
    fused: bool = False
    """Queries, keys and values come from one matrix, gate and up from another."""
    gated: bool = True
    """Three MLP matrices (gate, up, down), not two (fc1, fc2)."""
    output_projection: str = "o_proj"
    biases: frozenset[str] = frozenset()
    """Matrices that have a bias whatever the config says."""
    norms: int = 2
    """Norms of the hidden width in a layer."""
    norm_bias: bool = False
    qk_norm: bool = False
    sinks: bool = False
    """One learned attention sink a head."""
    expert_score_bias: bool = False
    """One correction an expert, added to the router's scores."""
    sliding: Sliding = "never"
    """Which layers have the sliding window where the config has no `layer_types`."""
    defaults: Mapping[str, int | bool] = field(default_factory=dict)
    """What an absent key means, as in the family's config class."""


_QWEN2 = Family(biases=_QKV, sliding="from_layer_if_switched_on")
_QWEN3 = Family(qk_norm=True, sliding="from_layer_if_switched_on", defaults={"head_dim": 128})
_QWEN3_VL = Family(qk_norm=True, defaults={"head_dim": 128})
_GEMMA = {"head_dim": 256, "tie_word_embeddings": True}
_DEEPSEEK = Family(moe=True, mla=True, defaults={"moe_layer_freq": 1, "first_k_dense_replace": 0})
_DEEPSEEK_V3 = Family(moe=True, mla=True, expert_score_bias=True, defaults=_DEEPSEEK.defaults)

FAMILIES: Mapping[str, Family] = {
    "llama": Family(),
    "mistral": Family(sliding="every_layer"),
    "qwen2": _QWEN2,
    "qwen2_vl": _QWEN2,
    "qwen2_vl_text": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_vl_text": _QWEN3_VL,
    "gemma": Family(defaults=_GEMMA),
    "gemma2": Family(
        norms=4,
        sliding="all_but_each_nth",
        defaults={**_GEMMA, "sliding_window": 4096, "sliding_window_pattern": 2},
    ),
    "gemma3_text": Family(
        norms=4,
        qk_norm=True,
        sliding="all_but_each_nth",
        defaults={
            **_GEMMA,
            "sliding_window": 4096,
            "sliding_window_pattern": 6,
        },
    ),
    "phi": Family(
        gated=False,
        output_projection="dense",
        biases=_QKV | {"dense", "fc1", "fc2", "lm_head"},
        norms=1,
        norm_bias=True,
    ),
    "phi3": Family(fused=True, sliding="every_layer"),
    "mixtral": Family(moe=True, sliding="every_layer"),
    "qwen2_moe": Family(moe=True, biases=_QKV, sliding="from_layer_if_switched_on"),
    "qwen3_moe": Family(moe=True, qk_norm=True, sliding="if_switched_on"),
    "qwen3_vl_moe_text": Family(moe=True, qk_norm=True),
    "gpt_oss": Family(
        moe=True,
        biases=_QKVO | {"gate_proj", "up_proj", "down_proj", "gate"},
        sinks=True,
        sliding="all_but_each_nth",
        defaults={"head_dim": 64, "sliding_window": 128, "sliding_window_pattern": 2},
    ),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK_V3,
    "kimi_k2": _DEEPSEEK_V3,
}
