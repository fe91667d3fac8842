"""`rlotel mfu` explains a number term by term and refuses what cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rlotel.cli.mfu import mfu

_REFERENCE: dict[str, Any] = json.loads(Path(__file__).with_name("reference_values.json").read_text())


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(_REFERENCE["Llama-3-8B"]["config"]))
    return tmp_path


def _run(model: Path, *options: str, env: dict[str, str] | None = None) -> Result:
    arguments = ["--model", str(model), "--seq-len", "8192", *options]
    return CliRunner().invoke(mfu, arguments, env={"RLOTEL_PEAK_FLOPS": None, "COLUMNS": "120", **(env or {})})


_H100 = ("--gpu", "NVIDIA H100 80GB HBM3")
_TORCHTITAN = ("--tokens-per-second", str(8 * 6667), "--gpus", "8")


def test_the_table_has_every_term_and_both_conventions(model: Path) -> None:
    result = _run(model, *_H100, *_TORCHTITAN)
    assert result.exit_code == 0
    for text in (
        "llama: 8,030,261,248 parameters",
        "7,504,658,432 of its weights multiply a token",
        "2 × 1,342,177,280 weights",
        "2 × 5,637,144,576 weights",
        "2 × 525,336,576 weights",
        "51.471",
        "53,336 tokens/s = 2,745.3 TFLOP/s",
        "8 × 989.4 TFLOP/s (bf16, dense), NVIDIA H100 80GB HBM3",
        "MFU    34.7%, attention causal",
        "39.0% if attention is counted full",
    ):
        assert text in result.output


def test_json_holds_the_same_numbers(model: Path) -> None:
    result = _run(model, *_H100, *_TORCHTITAN, "--convention", "full", "--json")
    numbers = json.loads(result.stdout)
    terms = numbers.pop("forward_flops_per_token")
    assert 3 * sum(terms.values()) == numbers["train_flops_per_token"]
    assert terms == {
        "attention_projections": 2684354560,
        "attention_core": 4294967296,
        "mlp": 11274289152,
        "lm_head": 1050673152,
    }
    assert numbers == {
        "model_type": "llama",
        "parameters": 8030261248,
        "active_weights": 7504658432,
        "language_tower_only": False,
        "seq_len": 8192,
        "convention": "full",
        "train_flops_per_token": 57912852480,
        "tokens_per_second": 53336,
        "flops_per_second": pytest.approx(57912852480 * 53336),
        "gpu": "NVIDIA H100 80GB HBM3",
        "gpus": 8,
        "dtype": "bf16",
        "peak_flops": 989.4e12,
        "mfu": pytest.approx(0.390, abs=0.0005),
        "mfu_refused": None,
        "mfu_causal": pytest.approx(0.347, abs=0.0005),
    }


def test_the_language_tower_is_said_to_be_all_that_is_counted(tmp_path: Path) -> None:
    text = _REFERENCE["Gemma-3-12B"]["config"]
    config = {"model_type": "gemma3", "text_config": text, "vision_config": {}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    result = _run(tmp_path, *_H100, "--tokens-per-second", "1000")
    assert "gemma3_text: 11,766,034,176 parameters, language tower only" in result.output


def test_a_value_above_1_is_refused_and_the_exit_says_so(model: Path) -> None:
    result = _run(model, *_H100, "--tokens-per-second", "53336")
    assert result.exit_code == 1
    assert "MFU    refused" in result.output
    assert "MFU refused (above one): is --tokens-per-second that of all --gpus" in result.output
    as_json = _run(model, *_H100, "--tokens-per-second", "53336", "--json")
    numbers, _ = json.JSONDecoder().raw_decode(as_json.output)
    assert (as_json.exit_code, numbers["mfu"], numbers["mfu_refused"]) == (1, None, "above_one")


def test_an_unknown_gpu_has_no_mfu_until_its_peak_is_given(model: Path) -> None:
    speed = ("--tokens-per-second", "6667")
    unknown = _run(model, "--gpu", "Foo 9000", *speed)
    assert unknown.exit_code == 1
    assert unknown.output == "Error: no dense bf16 peak is known for 'Foo 9000'; give it with --peak-flops\n"
    by_option = _run(model, "--gpu", "Foo 9000", *speed, "--peak-flops", "989.4e12")
    by_variable = _run(model, "--gpu", "Foo 9000", *speed, env={"RLOTEL_PEAK_FLOPS": "989.4e12"})
    assert (by_option.exit_code, by_variable.exit_code) == (0, 0)
    assert "MFU    34.7%" in by_option.output
    assert by_variable.output == by_option.output


def test_the_dtype_selects_the_peak(model: Path) -> None:
    result = _run(model, *_H100, "--tokens-per-second", "6667", "--dtype", "fp8")
    assert "1 × 1,979.0 TFLOP/s (fp8, dense)" in result.output


def test_an_unknown_model_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "mamba2"}')
    result = _run(tmp_path, *_H100, "--tokens-per-second", "1")
    assert result.exit_code == 1
    assert result.output.startswith("Error: no FLOP count for model_type 'mamba2', so no MFU; known are ")
    assert result.output.count("\n") == 1


def test_a_folder_without_a_config_is_one_clear_line(tmp_path: Path) -> None:
    result = _run(tmp_path, *_H100, "--tokens-per-second", "1")
    assert result.exit_code == 1
    assert "No such file" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tokens-per-second", "6667"), "give --gpu, or the peak itself with --peak-flops"),
        ((*_H100, "--tokens-per-second", "0"), "0.0 is not in the range"),
        ((*_H100, "--tokens-per-second", "nan"), "'nan' is not finite"),
        ((*_H100, "--tokens-per-second", "1", "--peak-flops", "inf"), "'inf' is not finite"),
    ],
)
def test_what_is_no_speed_or_peak_is_a_usage_error(model: Path, options: tuple[str, ...], message: str) -> None:
    result = _run(model, *options)
    assert result.exit_code == 2
    assert message in result.output
