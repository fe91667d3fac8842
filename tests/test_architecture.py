"""What holds of the code as a whole."""

import inspect
import subprocess
from pathlib import Path

import pytest

import rlotel

ROOT = Path(__file__).parent.parent
LONGEST, LONGEST_TEST = 300, 400
"""Lines."""


def sources() -> list[Path]:
    """Every Python file that was written by hand."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.exists() and not path.read_text().startswith("# Generated")]


def test_the_public_names_are_these() -> None:
    assert rlotel.__all__ == sorted(rlotel.__all__)
    assert set(rlotel.__all__) == {
        "Bracket",
        "Handle",
        "Session",
        "SettingError",
        "__version__",
        "adapters",
        "checkpoint",
        "instrument",
        "loop",
        "phase",
        "reward",
        "sample",
        "sync",
        "train",
        "uninstrument",
    }


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in rlotel.__all__:
        value = getattr(rlotel, name)
        assert name.startswith("__") or inspect.getdoc(value), name
        if inspect.isclass(value):
            for method, function in inspect.getmembers(value, inspect.isfunction):
                assert method.startswith("_") or inspect.getdoc(function), f"{name}.{method}"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = rlotel.nonesuch


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git says which files are ours")
def test_no_file_is_longer_than_one_can_read() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in sources()}
    most = {name: LONGEST_TEST if name.startswith("tests") else LONGEST for name in lengths}
    assert {name: length for name, length in lengths.items() if length > most[name]} == {}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git says which files are ours")
def test_every_module_says_what_it_is_for() -> None:
    modules = [path for path in sources() if path.read_text().strip()]
    assert [str(path) for path in modules if not path.read_text().lstrip().startswith(('"""', "#!"))] == []
