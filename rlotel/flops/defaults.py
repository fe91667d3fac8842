"""What a published `text_config` leaves out: the defaults of each family's config class in transformers.

transformers writes a nested config without the keys that equal its class's defaults (Gemma 3's lacks its
vocabulary, Pixtral's its number of heads), so these are part of the file format. A config that stands alone
is written in full and gets none of them: there, a missing size is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

Sizes = Mapping[str, int]


def _sizes(hidden: int, mlp: int, layers: int, heads: int, kv_heads: int, vocab: int, **more: int) -> Sizes:
    return {
        "hidden_size": hidden,
        "intermediate_size": mlp,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": vocab,
        **more,
    }


_QWEN2_VL = _sizes(8192, 29568, 80, 64, 8, 152064, sliding_window=4096, max_window_layers=80)
_MIXTURE_OF_128 = {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768}
_MIXTURE_OF_60 = {"num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408}

# transformers 4.57
TEXT_DEFAULTS: Mapping[str, Sizes] = {
    "llama": _sizes(4096, 11008, 32, 32, 32, 32000),
    "mistral": _sizes(4096, 14336, 32, 32, 8, 32000, sliding_window=4096),
    "qwen2": _sizes(4096, 22016, 32, 32, 32, 151936, sliding_window=4096, max_window_layers=28),
    "qwen2_vl_text": _QWEN2_VL,
    "qwen2_5_vl_text": _QWEN2_VL,
    "qwen3": _sizes(4096, 22016, 32, 32, 32, 151936, sliding_window=4096, max_window_layers=28),
    "qwen3_vl_text": _sizes(4096, 22016, 32, 32, 32, 151936),
    "gemma": _sizes(3072, 24576, 28, 16, 16, 256000),
    "gemma2": _sizes(2304, 9216, 26, 8, 4, 256000),
    "gemma3_text": _sizes(2304, 9216, 26, 8, 4, 262208),
    "phi": _sizes(2048, 8192, 24, 32, 32, 51200),
    "phi3": _sizes(3072, 8192, 32, 32, 32, 32064),
    "mixtral": _sizes(4096, 14336, 32, 32, 8, 32000, num_local_experts=8, num_experts_per_tok=2),
    "qwen3_moe": _sizes(2048, 6144, 24, 32, 4, 151936, sliding_window=4096, **_MIXTURE_OF_128),
    "qwen3_vl_moe_text": _sizes(2048, 5632, 24, 16, 16, 151936, **_MIXTURE_OF_60),
    "gpt_oss": _sizes(2880, 2880, 36, 64, 8, 201088, num_local_experts=128, num_experts_per_tok=4),
}
