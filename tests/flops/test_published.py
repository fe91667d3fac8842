"""Published MFU numbers come out again, each in the convention its publisher states."""

from __future__ import annotations

import pytest

from rlotel import flops

H100 = "NVIDIA H100 80GB HBM3"
LLAMA_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}
LLAMA2_7B = {**LLAMA_8B, "intermediate_size": 11008, "num_key_value_heads": 32, "vocab_size": 32000}
QWEN_7B = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
}
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 129280,
}
# PaLM's block is Llama's as far as matrices go: gated MLP of 4 h, one key and value head, shared embedding.
PALM_540B = {
    "model_type": "llama",
    "hidden_size": 18432,
    "intermediate_size": 73728,
    "num_hidden_layers": 118,
    "num_attention_heads": 48,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "vocab_size": 256000,
    "tie_word_embeddings": True,
}


def _mfu(
    config: object, seq: int, tokens_per_second: float, peak: float | None, convention: flops.Convention
) -> float:
    per_token = flops.train_flops(flops.read_config(config), [seq], convention=convention).total / seq
    value = flops.mfu(per_token * tokens_per_second, 1, 1, peak).value
    assert value is not None
    return 100 * value


def test_palm_540b_has_its_published_mfu_with_and_without_attention() -> None:
    architecture = flops.read_config(PALM_540B)
    assert architecture.active_weights / 1e9 == pytest.approx(540.35, abs=0.01)
    per_chip = 238.3e3 / 6144
    without_attention = flops.mfu(6 * architecture.active_weights * per_chip, 1, 1, 275e12).value
    assert without_attention is not None
    with_attention = _mfu(PALM_540B, 2048, per_chip, 275e12, "full")
    assert (round(with_attention, 1), round(100 * without_attention, 1)) == (46.2, 45.7)


@pytest.mark.parametrize(("tokens_per_second", "full", "causal"), [(5762, 33.7, 30.0), (6667, 39.0, 34.7)])
def test_torchtitan_published_33_to_39_percent_counting_all_of_attention(
    tokens_per_second: float, full: float, causal: float
) -> None:
    peak = flops.peak_flops(H100)
    assert _mfu(LLAMA_8B, 8192, tokens_per_second, peak, "full") == pytest.approx(full, abs=0.06)
    assert _mfu(LLAMA_8B, 8192, tokens_per_second, peak, "causal") == pytest.approx(causal, abs=0.06)


def test_fms_fsdp_published_46_percent_rounding_up_the_full_convention() -> None:
    peak = flops.peak_flops(H100)
    assert _mfu(LLAMA2_7B, 4096, 9600, peak, "full") == pytest.approx(44.7, abs=0.06)
    assert _mfu(LLAMA2_7B, 4096, 9600, peak, "causal") == pytest.approx(41.6, abs=0.06)


def test_deepseek_v3s_published_tokens_and_gpu_hours_give_39_percent() -> None:
    tokens_per_second = 14.8e12 / (2.664e6 * 3600)
    peak = flops.peak_flops("NVIDIA H800")
    assert tokens_per_second == pytest.approx(1543.2, abs=0.05)
    assert _mfu(DEEPSEEK_V3, 4096, tokens_per_second, peak, "causal") == pytest.approx(39.1, abs=0.06)
    assert _mfu(DEEPSEEK_V3, 4096, tokens_per_second, peak, "full") == pytest.approx(43.8, abs=0.06)


def test_a_grpo_step_of_qwen_7b_has_the_flops_of_each_of_its_phases() -> None:
    architecture = flops.read_config(QWEN_7B)
    rollouts, prompt, response = 128 * 8, 512, 1536
    lengths = [prompt + response] * rollouts
    prompts, responses = [prompt] * rollouts, [response] * rollouts
    cached = [0 if i % 8 == 0 else prompt for i in range(rollouts)]
    petaflop = {
        "train": flops.train_flops(architecture, lengths).total / 1e15,
        "old_logprob": flops.forward_flops(architecture, lengths).total / 1e15,
        "generate": flops.generation_flops(architecture, prompts, responses).total / 1e15,
        "prefix_shared": flops.generation_flops(architecture, prompts, responses, cached=cached).total / 1e15,
    }
    assert petaflop == pytest.approx(
        {"train": 91.55, "old_logprob": 30.52, "generate": 29.95, "prefix_shared": 23.91}, abs=0.02
    )
    utilization = flops.mfu(petaflop["train"] * 1e15, 20, 8, flops.peak_flops(H100))
    assert utilization.value == pytest.approx(0.579, abs=0.001)
