"""The count equals, to the integer, our reference values and what torch counts in transformers' models."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlotel import flops

_REFERENCE: dict[str, Any] = json.loads(Path(__file__).with_name("reference_values.json").read_text())
_MEASURED: dict[str, Any] = json.loads(Path(__file__).with_name("transformers_measured.json").read_text())


@pytest.mark.parametrize("model", _REFERENCE)
def test_the_count_equals_the_reference_values(model: str) -> None:
    golden = _REFERENCE[model]
    architecture = flops.read_config(golden["config"])
    seq = golden["seq"]
    assert {
        "total_params": architecture.parameters,
        "active_matmul": architecture.active_weights,
        "train_causal": flops.train_flops(architecture, [seq]).total,
        "train_full": flops.train_flops(architecture, [seq], convention="full").total,
    } == {
        "total_params": golden["total_params"],
        "active_matmul": golden["active_matmul"],
        "train_causal": golden["train_causal_per_token"] * seq,
        "train_full": golden["train_full_per_token"] * seq,
    }


@pytest.mark.parametrize("model_type", _MEASURED["models"])
def test_the_count_equals_what_torch_counts_in_the_models_own_code(model_type: str) -> None:
    measured = _MEASURED["models"][model_type]
    architecture = flops.read_config(measured["config"])
    forward = flops.forward_flops(architecture, [_MEASURED["tokens"]], convention="full")
    assert (architecture.parameters, forward.total) == (measured["parameters"], measured["forward_flops"])


@pytest.mark.parametrize("model", _REFERENCE)
def test_a_config_object_reads_like_its_mapping(model: str) -> None:
    config = _REFERENCE[model]["config"]
    assert flops.read_config(SimpleNamespace(**config)) == flops.read_config(config)
