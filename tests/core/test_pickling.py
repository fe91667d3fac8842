"""Watched functions in what goes to other processes: an actor's class carries the functions it uses."""

import copy
import importlib
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlotel.errors import Faults
from rlotel.patching import Patches
from tests.conftest import Program

MODULE = """
def score(answer):
    return len(answer)

class Policy:
    def __init__(self, name):
        self.name = name

    def train(self):
        return self.name

    @classmethod
    def make(cls):
        return cls("made")
"""

PROGRAM = """
import json, pickle, sys
sys.path.insert(0, sys.argv[1])
score, train, make, unbound = pickle.load(sys.stdin.buffer)
print(json.dumps([score("abc"), train(), make().name, unbound(make())]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the framework is."""
    (tmp_path / "framework_that_pickles.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "framework_that_pickles", raising=False)
    return tmp_path


def test_a_watched_function_arrives_where_rlotel_is_not_installed(folder: Path) -> None:
    framework = importlib.import_module("framework_that_pickles")

    patches = Patches(Faults())
    seen: list[object] = []
    for name in ("score", "Policy.train", "Policy.make"):
        patches.watch(f"framework_that_pickles:{name}", before=seen.append)
    try:
        policy = framework.Policy("p")
        pickled = pickle.dumps((framework.score, policy.train, framework.Policy.make, framework.Policy.train))
    finally:
        patches.undo()

    done = subprocess.run(
        [
            sys.executable,
            "-S",  # without what is installed
            "-c",
            PROGRAM,
            str(folder),
        ],
        input=pickled,
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout) == [3, "p", "made", "made"]


def test_a_watched_function_is_itself_again_when_it_comes_back(folder: Path) -> None:
    framework = importlib.import_module("framework_that_pickles")

    patches = Patches(Faults())
    seen: list[object] = []
    patches.watch("framework_that_pickles:score", before=seen.append)
    try:
        assert pickle.loads(pickle.dumps(framework.score)) is framework.score
        assert framework.score("ab") == 2
        assert len(seen) == 1
    finally:
        patches.undo()


def test_a_watched_function_is_copied_as_any_function_is(folder: Path) -> None:
    """Settings and batches that hold functions are copied all the time."""
    framework = importlib.import_module("framework_that_pickles")
    patches = Patches(Faults())
    seen: list[object] = []
    for name in ("score", "Policy.train", "Policy.make"):
        patches.watch(f"framework_that_pickles:{name}", before=seen.append)
    try:
        settings = {"score": framework.score, "train": framework.Policy("p").train, "make": framework.Policy.make}
        shallow, deep = copy.copy(framework.score), copy.deepcopy(settings)
        assert (shallow, deep["score"]) == (framework.score, framework.score)
        assert (copy.copy(settings["train"])(), deep["train"](), deep["make"]().name) == ("p", "p", "made")
        assert deep["train"].__self__ is not settings["train"].__self__
        assert len(seen) == 3
    finally:
        patches.undo()


def test_a_watched_function_of_the_program_itself_is_pickled_as_before(program: Program) -> None:
    """As multiprocessing does it; cloudpickle takes it for what it is."""
    program("""
        import pickle
        from rlotel.errors import Faults
        from rlotel.patching import Patches

        def score(text):
            return len(text)

        pickled = pickle.dumps(score)
        patches = Patches(Faults())
        patches.watch("__main__:score")
        assert pickle.loads(pickled) is score
        assert pickle.loads(pickle.dumps(score)) is score
    """)


class Private:
    def __init__(self, name: str) -> None:
        self.name = name

    def __say(self) -> str:
        return self.name

    def saying(self) -> Callable[[], str]:
        return self.__say


def test_a_private_method_is_copied_with_its_object() -> None:
    patches = Patches(Faults())
    patches.watch_method(Private, "_Private__say")
    try:
        one = Private("a")
        copied: dict[str, Any] = copy.deepcopy({"one": one, "say": one.saying()})
        one.name = "b"
        assert copied["say"]() == "a"
        assert copied["say"].__self__ is copied["one"]
    finally:
        patches.undo()
