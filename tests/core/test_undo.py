"""Undoing what was watched: every original comes back, also where others came in between."""

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlotel.errors import Faults
from rlotel.patching import Patches

MODULE = "rlotel_test_undone"


def function(x: int) -> int:
    return x


class Target:
    @staticmethod
    def static(x: int) -> int:
        return x


class Log:
    """Patches whose observers write down what they see."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.errors: list[Exception] = []
        self.patches = Patches(Faults(lambda _place, error: self.errors.append(error)))

    def watch(self) -> None:
        self.patches.watch(
            f"{MODULE}:function",
            before=lambda _: self.seen.append("before"),
            after=lambda _: self.seen.append("after"),
        )


@pytest.fixture
def target() -> Iterator[types.ModuleType]:
    module = types.ModuleType(MODULE)
    vars(module)["function"] = function
    sys.modules[MODULE] = module
    yield module
    del sys.modules[MODULE]


def test_a_module_is_watched_once_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rlotel_test_later.py").write_text("def function(x):\n    return x\n")
    (tmp_path / "rlotel_test_never.py").write_text("def function(x):\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    seen: list[object] = []
    patches = Patches(Faults())
    for module in ("later", "never"):
        patches.watch(f"rlotel_test_{module}:function", before=lambda call: seen.append(call.args))
    import rlotel_test_later  # type: ignore[import-not-found]

    assert rlotel_test_later.function(1) == 1
    patches.undo()
    assert rlotel_test_later.function(2) == 2
    import rlotel_test_never  # type: ignore[import-not-found]

    assert rlotel_test_never.function(3) == 3
    assert isinstance(rlotel_test_never.function, types.FunctionType)
    assert seen == [(1,)]


def test_two_watches_of_one_function_are_undone_in_reverse(target: Any) -> None:
    log = Log()
    log.watch()
    log.watch()
    target.function(1)
    assert log.seen == ["before", "before", "after", "after"]
    log.patches.undo()
    assert target.function is function


def test_where_someone_wrapped_after_us_theirs_stays_and_ours_is_silent(target: Any) -> None:
    log = Log()
    log.watch()
    ours = target.function

    def theirs(x: int) -> tuple[str, int]:
        return "theirs", ours(x)

    target.function = theirs
    log.patches.undo()
    assert target.function is theirs
    assert target.function(1) == ("theirs", 1)
    assert (log.seen, log.errors) == ([], [])
    target.function = function


def test_values_and_items_are_put_back(target: Any) -> None:
    class Owner:
        inherited = "class"

    owner = Owner()
    patches = Patches(Faults())
    items = {"kept": "1", "changed": "1"}
    patches.replace(owner, "inherited", "ours")
    patches.replace(Target, "static", print)
    patches.set_item(items, "new", "ours")
    patches.set_item(items, "kept", "ours")
    patches.set_item(items, "changed", "ours")
    assert (owner.inherited, items) == ("ours", {"new": "ours", "kept": "ours", "changed": "ours"})
    items["changed"] = "theirs"
    patches.undo()
    assert (vars(owner), items) == ({}, {"kept": "1", "changed": "theirs"})
    assert Target.static(4) == 4
