"""LoRA: frozen matrices train in two passes, adapters and attention in three."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlotel import flops

LLAMA_8B = flops.read_config(
    {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
    }
)


def test_llama_8b_with_rank_16_costs_36_71_gflop_a_token() -> None:
    lora = flops.Lora(16)
    assert lora.active_weights(LLAMA_8B) == 41_943_040  # what PEFT prints as trainable params
    total = flops.train_flops(LLAMA_8B, [8192], lora=lora).total
    assert total / 8192 / 1e9 == pytest.approx(36.71, abs=0.005)


@given(st.lists(st.integers(0, 9000), max_size=5), st.integers(1, 256))
def test_training_adapters_is_two_passes_of_the_frozen_and_three_of_the_rest(
    lengths: list[int], rank: int
) -> None:
    lora = flops.Lora(rank)
    base = flops.forward_flops(LLAMA_8B, lengths)
    adapters = 2 * sum(lengths) * lora.active_weights(LLAMA_8B)
    assert flops.forward_flops(LLAMA_8B, lengths, lora=lora).total == base.total + adapters
    expected = 2 * base.total + base.attention_core + 3 * adapters
    assert flops.train_flops(LLAMA_8B, lengths, lora=lora).total == expected


def test_adapters_of_experts_count_for_the_experts_a_token_is_routed_to() -> None:
    config = {
        "model_type": "mixtral",
        "hidden_size": 8,
        "intermediate_size": 6,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "vocab_size": 5,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    }
    lora = flops.Lora(1, frozenset({"up_proj"}))
    assert lora.active_weights(flops.read_config(config)) == 3 * 2 * (8 + 6)


def test_an_adapter_config_reads_from_file_folder_mapping_and_object(tmp_path: Path) -> None:
    config = {"r": 8, "target_modules": ["q_proj", "v_proj"], "peft_type": "LORA"}
    file = tmp_path / "adapter_config.json"
    file.write_text(json.dumps(config))
    forms: list[object] = [file, tmp_path, config, SimpleNamespace(r=8, target_modules={"q_proj", "v_proj"})]
    expected = flops.Lora(8, frozenset({"q_proj", "v_proj"}))
    assert [flops.Lora.from_config(form) for form in forms] == [expected] * 4
    assert flops.Lora.from_config({"r": 8, "target_modules": "all-linear"}) == flops.Lora(8)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"target_modules": ["q_proj"]}, "r of the LoRA config is None"),
        ({"r": 0, "target_modules": ["q_proj"]}, "a LoRA rank is 1 or more, not 0"),
        ({"r": 8, "target_modules": ".*_proj"}, "target_modules of the LoRA config is '.*_proj'"),
        ({"r": 8, "target_modules": []}, r"target_modules of the LoRA config is \[\]"),
    ],
)
def test_an_adapter_config_that_cannot_be_counted_is_refused(config: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        flops.Lora.from_config(config)


def test_a_target_the_model_lacks_is_refused_with_the_names_it_has() -> None:
    with pytest.raises(ValueError, match=r"c_attn: no matrix of llama, which has q_proj, k_proj"):
        flops.forward_flops(LLAMA_8B, [1], lora=flops.Lora(4, frozenset({"c_attn"})))
