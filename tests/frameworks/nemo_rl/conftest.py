"""Stand-ins for NeMo RL on the path, and a session that watches them."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rlotel.testing import Telemetry, captured

HERE = Path(__file__).parent


class Rows(list[Any]):
    """A tensor, as far as it is looked into: token counts of rows, or losses of optimizer steps."""

    def tolist(self) -> list[Any]:
        return list(self)

    def numel(self) -> int:
        return len(self)


def batch(*lengths: int) -> dict[str, Rows]:
    """Rows to train on, by their number of tokens."""
    return {"input_lengths": Rows(lengths)}


def rollout(prompt: int, generated: int, environment: int = 0) -> list[dict[str, Any]]:
    """One rollout, by its numbers of tokens."""
    messages: list[dict[str, Any]] = [{"role": "user", "token_ids": range(prompt)}]
    messages.append({"role": "assistant", "token_ids": range(generated), "generation_logprobs": range(generated)})
    if environment:
        messages.append({"role": "environment", "token_ids": range(environment)})
    return messages


class Nemo:
    """NeMo RL in one test."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry
        self.script = self.module("script")
        self.script.now = telemetry.clock.monotonic
        self.checkpointer = self.module("utils.checkpoint").CheckpointManager({})
        self.logger = self.module("utils.logger").Logger({})
        self.policy = self.module("models.policy.lm_policy").Policy()

    def module(self, name: str) -> Any:
        return importlib.import_module(f"nemo_rl.{name}")

    def timer(self) -> Any:
        return self.module("utils.timer").Timer()

    def play(self, **functions: Callable[..., Any]) -> None:
        """Say what stand-in functions do; each gets its arguments by name. Others do nothing."""

        def run(name: str, arguments: Mapping[str, Any]) -> Any:
            given = {key: value for key, value in arguments.items() if key != "self"}
            return functions[name](**given) if name in functions else None

        self.script.run = run

    def train(self, body: Callable[[], object], target: str = "grpo:grpo_train", **arguments: Any) -> None:
        """Run one of the training functions with `body` as what it does."""
        module, _, name = target.partition(":")
        function = getattr(self.module(f"algorithms.{module}"), name)
        mine = {"policy": self.policy, "logger": self.logger, "checkpointer": self.checkpointer}
        given = {"master_config": {}, **mine, **arguments}
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        before = self.script.run

        def run(called: str, values: Mapping[str, Any]) -> Any:
            return body() if called == name else before(called, values)

        self.script.run = run
        try:
            function(**{name: given.get(name) for name in names})
        finally:
            self.script.run = before

    def pass_(self, seconds: float) -> None:
        self.telemetry.clock.advance(seconds)


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "nemo_rl"]:
        del sys.modules[name]


@pytest.fixture
def standins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stand-ins can be imported."""
    monkeypatch.syspath_prepend(str(HERE / "standins"))
    forget()
    yield
    forget()


@pytest.fixture
def nemo(standins: None) -> Iterator[Nemo]:
    """NeMo RL, watched."""
    with captured(frameworks=("nemo_rl", "threads")) as telemetry:
        yield Nemo(telemetry)
