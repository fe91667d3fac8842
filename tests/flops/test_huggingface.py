"""Every form a Hugging Face config comes in is read, and one that is not understood is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlotel import flops

SMALL: dict[str, Any] = {
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 2,
    "vocab_size": 11,
}
LLAMA = {"model_type": "llama", **SMALL}


def _windows(config: dict[str, Any]) -> dict[int | None, int]:
    return {core.window: core.layers for core in flops.read_config(config).cores}


def test_a_file_its_folder_its_mapping_and_an_object_read_alike(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA))
    expected = flops.read_config(LLAMA)
    forms: list[object] = [file, str(file), tmp_path, SimpleNamespace(**LLAMA)]
    assert [flops.read_config(form) for form in forms] == [expected] * 4


def test_heads_default_to_one_key_head_per_query_head_and_an_even_share_of_the_width() -> None:
    bare = {k: v for k, v in LLAMA.items() if k not in ("num_key_value_heads", "head_dim")}
    nulls = {**bare, "num_key_value_heads": None, "head_dim": None}
    full = {**bare, "num_key_value_heads": 4, "head_dim": 2}
    assert flops.read_config(bare) == flops.read_config(nulls) == flops.read_config(full)


def test_a_tied_head_is_multiplied_but_held_once() -> None:
    untied, tied = (flops.read_config({**LLAMA, "tie_word_embeddings": tie}) for tie in (False, True))
    assert flops.train_flops(untied, [7]) == flops.train_flops(tied, [7])
    assert untied.parameters - tied.parameters == 11 * 8


@pytest.mark.parametrize(
    ("config", "windows"),
    [
        ({"model_type": "llama", "sliding_window": 4}, {None: 6}),
        ({"model_type": "mistral", "sliding_window": 4}, {4: 6}),
        ({"model_type": "mistral", "sliding_window": None}, {None: 6}),
        ({"model_type": "phi3", "sliding_window": 4}, {4: 6}),
        ({"model_type": "qwen2", "sliding_window": 4, "use_sliding_window": False}, {None: 6}),
        (
            {"model_type": "qwen2", "sliding_window": 4, "use_sliding_window": True, "max_window_layers": 5},
            {None: 5, 4: 1},
        ),
        ({"model_type": "gemma2"}, {4096: 3, None: 3}),
        ({"model_type": "gemma3_text", "sliding_window": 4}, {4: 5, None: 1}),
        ({"model_type": "gemma3_text", "sliding_window": 4, "sliding_window_pattern": 3}, {4: 4, None: 2}),
        ({"model_type": "qwen3", "sliding_window": 4, "layer_types": ["full_attention"] * 6}, {None: 6}),
        (
            {"model_type": "qwen3", "sliding_window": 4, "layer_types": ["sliding_attention"] * 6},
            {4: 6},
        ),
    ],
)
def test_the_layers_a_window_covers_follow_the_familys_rule(
    config: dict[str, Any], windows: dict[int | None, int]
) -> None:
    assert _windows({**SMALL, **config}) == windows


@pytest.mark.parametrize(
    ("config", "mixtures"),
    [
        ({"model_type": "qwen3_moe"}, 6),
        ({"model_type": "qwen3_moe", "decoder_sparse_step": 4}, 1),
        ({"model_type": "qwen3_moe", "mlp_only_layers": [0, 5]}, 4),
        ({"model_type": "deepseek_v3", "first_k_dense_replace": 2}, 4),
        ({"model_type": "deepseek_v3", "moe_layer_freq": 4}, 2),
        ({"model_type": "qwen3_moe", "mlp_only_layers": list(range(6))}, 0),
    ],
)
def test_the_layers_that_are_mixtures_follow_the_config(config: dict[str, Any], mixtures: int) -> None:
    latent = {"kv_lora_rank": 3, "qk_nope_head_dim": 2, "qk_rope_head_dim": 2, "v_head_dim": 2}
    experts = {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 3}
    linears = flops.read_config({**SMALL, **latent, **experts, **config}).linears
    routers = sum(linear.layers for linear in linears if linear.name == "gate")
    dense = sum(linear.layers for linear in linears if linear.name == "up_proj" and linear.copies == 1)
    assert (routers, dense) == (mixtures, 6 - mixtures)


def test_the_language_tower_of_a_vision_model_is_read_and_said_to_be_all_there_is() -> None:
    text = {"model_type": "qwen2_5_vl_text", **SMALL}
    nested = flops.read_config({"model_type": "qwen2_5_vl", "text_config": text, "vision_config": {}})
    flat = flops.read_config({"model_type": "qwen2_5_vl", **SMALL, "vision_config": {"depth": 2}})
    assert nested.language_tower_only
    assert flat.language_tower_only
    assert nested.linears == flat.linears
    assert not flops.read_config(text).language_tower_only


def test_gemma_3_27b_as_published_lacks_sizes_that_its_class_defaults_to() -> None:
    published = {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "head_dim": 128,
            "hidden_size": 5376,
            "intermediate_size": 21504,
            "num_attention_heads": 32,
            "num_hidden_layers": 62,
            "num_key_value_heads": 16,
            "sliding_window": 1024,
        },
    }
    architecture = flops.read_config(published)
    assert architecture.parameters / 1e9 == pytest.approx(27.01, abs=0.01)
    assert {core.window: core.layers for core in architecture.cores} == {1024: 52, None: 10}


def test_pixtral_as_published_lacks_its_heads_and_switches_its_window_off() -> None:
    published = {
        "model_type": "llava",
        "text_config": {
            "model_type": "mistral",
            "head_dim": 128,
            "hidden_size": 5120,
            "num_hidden_layers": 40,
            "sliding_window": None,
            "vocab_size": 131072,
        },
    }
    architecture = flops.read_config(published)
    assert architecture.parameters / 1e9 == pytest.approx(12.25, abs=0.01)
    assert [core.window for core in architecture.cores] == [None]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "mamba2"}, "no FLOP count for model_type 'mamba2', so no MFU; known are deepseek_v2, "),
        ({}, "no FLOP count for model_type None"),
        (object(), "no FLOP count for model_type None"),
        ({"model_type": ["llama"]}, r"no FLOP count for model_type \['llama'\]"),
        ({"text_config": {"model_type": "qwen3_next"}}, "no FLOP count for model_type 'qwen3_next'"),
        ({"model_type": "llama"}, "the llama config has no num_hidden_layers, so no FLOP count; give the config"),
        ({**LLAMA, "hidden_size": "8"}, "hidden_size of the llama config is '8', not a whole number above 0"),
        ({**LLAMA, "hidden_size": True}, "hidden_size of the llama config is True"),
        ({**LLAMA, "vocab_size": -1}, "vocab_size of the llama config is -1"),
        ({**LLAMA, "layer_types": ["chunked_attention"] * 6}, "layers of type 'chunked_attention'"),
        ({**LLAMA, "layer_types": ["full_attention"] * 5}, "layer_types of the llama config do not name 6 layers"),
        ({**SMALL, "model_type": "mixtral"}, "no num_experts or num_local_experts or n_routed_experts"),
        (
            {**SMALL, "model_type": "qwen3_moe", "num_experts": 2, "mlp_only_layers": 3},
            "mlp_only_layers of the qwen3_moe config is 3, no list",
        ),
    ],
)
def test_what_is_not_understood_is_refused_in_one_line(config: object, message: str) -> None:
    with pytest.raises(flops.UnknownArchitecture, match=message) as refusal:
        flops.read_config(config)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("text", "message"), [("{", "is no JSON"), ("[]", "holds no JSON object")])
def test_a_file_that_is_no_config_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(flops.UnknownArchitecture, match=message):
        flops.read_config(file)
