"""The command `rlotel` as a whole: help, version, and commands whose needs are not installed."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rlotel import __version__
from rlotel.cli import COMMANDS

Rlotel = Callable[..., subprocess.CompletedProcess[str]]


def test_the_help_lists_every_command_in_a_line_of_its_own(rlotel: Rlotel) -> None:
    result = rlotel("--help", COLUMNS="100")  # where it is narrower, a long line goes on in the next
    assert (result.returncode, result.stderr) == (0, "")
    listed = result.stdout.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed] == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there_and_explains_itself(rlotel: Rlotel, name: str) -> None:
    result = rlotel(name, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"Usage: rlotel {name}")


def test_the_version_is_the_packages(rlotel: Rlotel) -> None:
    assert rlotel("--version").stdout == f"rlotel {__version__}\n"


def test_a_command_that_does_not_exist_is_said_with_those_that_are_close(rlotel: Rlotel) -> None:
    result = rlotel("docter")
    assert result.returncode == 2
    assert result.stderr == "Error: there is no command 'docter'; did you mean `rlotel doctor`?\n"
    result = rlotel("zzz")
    assert result.returncode == 2
    assert "No such command 'zzz'" in result.stderr


def test_a_terminal_that_lacks_a_character_gets_another(rlotel: Rlotel, tmp_path: Path) -> None:
    config = {"model_type": "qwen3", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100}
    (tmp_path / "config.json").write_text(json.dumps(config | heads | {"tie_word_embeddings": False}))
    speed = ("--seq-len", "8", "--tokens-per-second", "1", "--peak-flops", "1e12")
    result = rlotel("mfu", "--model", "config.json", *speed, PYTHONIOENCODING="ascii")
    assert (result.returncode, result.stderr) == (0, "")
    assert "3 ? forward" in result.stdout


def test_a_missing_extra_is_one_line_that_says_what_to_install(rlotel: Rlotel, tmp_path: Path) -> None:
    # Found before the installed one, as if that were not there.
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')\n")
    result = rlotel("demo", PYTHONPATH=str(tmp_path))
    assert result.returncode == 1
    assert (
        result.stderr == "Error: `rlotel demo` needs numpy, which is not installed: pip install 'rlotel[demo]'\n"
    )
