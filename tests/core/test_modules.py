"""A framework is watched from its first import on, and costs nothing before."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlotel.errors import Faults
from rlotel.patching import Patches

NAME = "package_that_is_imported_late"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package that binds a function of its own module by name as it is imported."""
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / "__init__.py").write_text("import sys\nsys.log.append('executed')\nfrom .inner import f\n")
    (folder / "inner.py").write_text("def f():\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "log", [], raising=False)
    yield NAME
    for name in (NAME, f"{NAME}.inner"):
        sys.modules.pop(name, None)


def log() -> list[str]:
    return sys.log  # type: ignore[attr-defined, no-any-return]


def test_what_comes_before_an_import_is_done_once_and_first(package: str) -> None:
    patches = Patches(Faults())
    patches.before_import(package, lambda: log().append("before"))
    assert log() == []
    importlib.import_module(package)
    importlib.reload(sys.modules[package])
    assert log() == ["before", "executed", "executed"]
    patches.undo()


def test_where_it_is_imported_already_it_is_done_now(package: str) -> None:
    importlib.import_module(package)
    patches = Patches(Faults())
    patches.before_import(package, lambda: log().append("before"))
    assert log() == ["executed", "before"]
    patches.undo()


def test_after_the_session_nothing_is_done(package: str) -> None:
    patches = Patches(Faults())
    patches.before_import(package, lambda: log().append("before"))
    patches.undo()
    importlib.import_module(package)
    assert log() == ["executed"]


def test_an_error_in_it_does_not_reach_the_import(package: str) -> None:
    errors: list[Exception] = []
    patches = Patches(Faults(lambda _place, error: errors.append(error)))

    def fail() -> None:
        raise ZeroDivisionError

    patches.before_import(package, fail)
    importlib.import_module(package)
    assert log() == ["executed"]
    assert [type(error) for error in errors] == [ZeroDivisionError]
    patches.undo()


def test_functions_that_the_package_binds_as_it_is_imported_are_watched(package: str) -> None:
    patches = Patches(Faults())
    seen: list[object] = []
    patches.before_import(package, lambda: patches.watch(f"{package}.inner:f", after=seen.append))
    assert importlib.import_module(package).f() == 1
    assert len(seen) == 1
    patches.undo()


def test_an_integration_is_loaded_only_with_its_framework() -> None:
    program = """
import sys, rlotel
rlotel.instrument(gpu=False, capture=sys.argv[1])
loaded = {name for name in sys.modules if name.startswith("rlotel.integrations.")}
print(sorted(name for name in loaded if name.count(".") == 2))
"""
    done = subprocess.run([sys.executable, "-c", program, "/dev/null"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['rlotel.integrations.threads']"
