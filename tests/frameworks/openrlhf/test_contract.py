"""The stand-ins against the real source of OpenRLHF, where a release of it is unpacked or installed.

The source is read, not run: what it needs to run is not needed here.
"""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frameworks.running import release

STANDINS = Path(__file__).parent / "standins" / "openrlhf"


def source() -> Path | None:
    """The folder of the real package."""
    if (unpacked := release("openrlhf")) is not None:
        return unpacked / "openrlhf"
    found = importlib.util.find_spec("openrlhf")
    return Path(found.origin).parent if found is not None and found.origin else None


SOURCE = source()
pytestmark = pytest.mark.skipif(SOURCE is None, reason="no release of OpenRLHF is unpacked or installed")


def functions(path: Path) -> Iterator[tuple[str, list[str], bool]]:
    """Every function of a module: its name, its parameters, and whether it takes others by name."""

    def look(node: ast.AST, above: str) -> Iterator[tuple[str, list[str], bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from look(child, f"{above}{child.name}.")
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names = [one.arg for one in (*child.args.args, *child.args.kwonlyargs)]
                yield above + child.name, names, child.args.kwarg is not None

    return look(ast.parse(path.read_text()), "")


@pytest.mark.parametrize(
    "name",
    sorted(str(path.relative_to(STANDINS)) for path in STANDINS.rglob("*.py") if path.stat().st_size > 100),
)
def test_the_stand_ins_are_called_as_the_real_functions_are(name: str) -> None:
    assert SOURCE is not None
    if name == "script.py":
        return
    places = [SOURCE / name, *([SOURCE / "utils" / "utils.py"] if name == "utils/__init__.py" else [])]
    real = {function: (parameters, others) for path in places for function, parameters, others in functions(path)}
    for function, parameters, _ in functions(STANDINS / name):
        assert function in real, function
        given, others = real[function]
        assert set(parameters) <= set(given) or others, function
        assert [one for one in given if one in parameters] == parameters, function
