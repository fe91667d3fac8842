"""The bytes decoding moves: weights once a step, the KV cache of what each token sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlotel import flops

_REFERENCE: dict[str, Any] = json.loads(Path(__file__).with_name("reference_values.json").read_text())


def _model(name: str) -> flops.Architecture:
    return flops.read_config(_REFERENCE[name]["config"])


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("Llama-3-8B", 131_072),
        ("Qwen2.5-7B", 57_344),
        ("Qwen3-8B", 147_456),
        ("Qwen3-30B-A3B", 98_304),
        ("DeepSeek-V3", 70_272),
    ],
)
def test_the_kv_cache_of_a_token_has_its_known_size(model: str, size: int) -> None:
    assert flops.kv_bytes_per_token(_model(model)) == size


def test_one_sequence_of_qwen_7b_decodes_a_step_in_4_26_ms_at_full_bandwidth() -> None:
    qwen = _model("Qwen2.5-7B")
    moved = flops.decode_bytes(qwen, [2048], [2], batch=1)
    assert moved / 3.35e12 == pytest.approx(4.26e-3, abs=5e-6)
    assert flops.mbu(moved, 4.26e-3, 1, flops.peak_bandwidth("NVIDIA H100 80GB HBM3")).value == pytest.approx(
        1, abs=0.001
    )


def test_64_sequences_of_qwen_30b_touch_nearly_every_expert() -> None:
    moved = flops.decode_bytes(_model("Qwen3-30B-A3B"), [2048] * 64, [2] * 64, batch=64)
    assert moved / 1e9 == pytest.approx(72, abs=0.5)


def test_a_dense_model_reads_its_matrices_once_whatever_the_batch() -> None:
    llama = _model("Llama-3-8B")
    assert flops.weight_bytes_per_step(llama, 1) == flops.weight_bytes_per_step(llama, 999) == 2 * 7_504_658_432
    assert flops.weight_bytes_per_step(llama, 1, bytes_per_weight=1) == 7_504_658_432


@given(st.floats(1, 500), st.floats(1, 500))
def test_a_mixture_reads_between_its_active_and_all_its_weights_and_more_for_a_larger_batch(
    one: float, other: float
) -> None:
    qwen = _model("Qwen3-30B-A3B")
    small, large = (flops.weight_bytes_per_step(qwen, batch) for batch in sorted((one, other)))
    assert 2 * qwen.active_weights * 0.999999 <= small <= large <= 2 * qwen.parameters


def test_a_window_bounds_what_a_token_sees_of_the_cache() -> None:
    gpt_oss = _model("GPT-OSS-20B")
    cache = flops.decode_bytes(gpt_oss, [4096], [2], batch=1) - flops.weight_bytes_per_step(gpt_oss, 1)
    per_layer = 2 * 8 * 64 * 2
    assert cache == 12 * per_layer * (128 + 4097)


def test_a_response_of_one_token_decodes_nothing() -> None:
    assert flops.decode_bytes(_model("Llama-3-8B"), [100, 100], [1, 0], batch=8) == 0


def test_impossible_batches_and_lengths_are_refused() -> None:
    llama = _model("Llama-3-8B")
    with pytest.raises(ValueError, match="batch above 0, not 0"):
        flops.decode_bytes(llama, [1], [2], batch=0)
    with pytest.raises(ValueError, match="shorter"):
        flops.decode_bytes(llama, [1, 2], [2], batch=1)
