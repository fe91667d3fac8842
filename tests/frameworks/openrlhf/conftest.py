"""Stand-ins for OpenRLHF on the path, and a session that watches them as in one of Ray's workers."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlotel.testing import START_NS, Telemetry, captured

HERE = Path(__file__).parent
STANDINS = ("openrlhf", "ray")
ARGS: dict[str, Any] = {
    "actor.model_name_or_path": "Qwen/Qwen3-0.6B",
    "actor.num_nodes": 1,
    "actor.num_gpus_per_node": 2,
    "algo.advantage.estimator": "group_norm",
    "algo.kl.init_coef": 0,
    "ckpt.path": "gs://bucket/run",
    "data.prompt_dataset": "openai/gsm8k",
    "reward.remote_url": ["reward.py"],
    "rollout.batch_size": 2,
    "rollout.n_samples_per_prompt": 2,
    "train.batch_size": 4,
    "train.max_epochs": 1,
    "train.num_episodes": 1,
    "vllm.num_engines": 2,
    "vllm.tensor_parallel_size": 1,
    "eval.steps": float("inf"),
}


def nested(settings: Mapping[str, Any]) -> Any:
    """Arguments as OpenRLHF nests them."""
    root: dict[str, Any] = {}
    for path, value in settings.items():
        node = root
        *names, last = path.split(".")
        for name in names:
            node = node.setdefault(name, {})
        node[last] = value
    return namespace(root)


def namespace(found: Any) -> Any:
    if not isinstance(found, Mapping):
        return found
    return SimpleNamespace(**{name: namespace(value) for name, value in found.items()})


class Tensor:
    """A tensor, as far as it is looked into: what its elements sum up to."""

    def __init__(self, total: float) -> None:
        self._total = total

    def sum(self) -> float:
        return self._total


def rollout(
    given: int, generated: int, reward: float | None = 1.0, turns: int | None = None, made: float | None = None
) -> Any:
    """One rollout: its tokens, its reward, and what was left on it when it was made, in seconds of the test."""
    left: dict[str, Any] = {} if turns is None else {"rlotel_turns": turns}
    if made is not None:
        left["rlotel_made"] = START_NS + round(made * 1e9)
    return SimpleNamespace(
        action_mask=Tensor(generated),
        total_length=Tensor(given + generated),
        rewards=None if reward is None else Tensor(reward),
        **left,
    )


class Openrlhf:
    """OpenRLHF in one test."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry
        self.script: Any = importlib.import_module("openrlhf.script")
        self.groups = {
            name: self.module("trainer.ray.launcher").RayActorGroup()
            for name in ("actor_model_group", "critic_model_group", "reward_model_group", "initial_model_group")
        }
        self.groups["reference_model_group"] = self.groups["initial_model_group"]
        self.maker = self.module("trainer.ppo_utils.experience_maker").RemoteExperienceMaker(
            *list(self.groups.values())[:4]
        )
        self.trainer: Any = None
        self.generator: Any = None

    def module(self, name: str) -> Any:
        return importlib.import_module(f"openrlhf.{name}")

    def queue(self) -> Any:
        return importlib.import_module("ray.util.queue").Queue()

    def make_generator(self, **settings: Any) -> Any:
        args = nested({**ARGS, **{name.replace("__", "."): value for name, value in settings.items()}})
        make = self.module("trainer.ppo_utils.samples_generator").SamplesGenerator
        self.generator = make(SimpleNamespace(args=args), None, None, None, None)
        self.generator._sample_buffer, self.generator._dataloader_iter = [], object()
        return self.generator

    def make_trainer(self, critic: bool = False, **settings: Any) -> Any:
        generator = self.make_generator(**settings)
        groups = [self.groups["actor_model_group"], self.groups["critic_model_group"] if critic else None]
        make = self.module("trainer.ppo_trainer").BasePPOTrainer
        self.trainer = make(SimpleNamespace(args=generator.args), *groups, None, None, None, None)
        return self.trainer

    def play(self, **functions: Callable[..., Any]) -> None:
        """Say what stand-in methods do, by their names; each gets what it was called with. Others do nothing."""

        def run(name: str, arguments: Mapping[str, Any]) -> Any:
            function = functions.get(name.rpartition(".")[2])
            return None if function is None else function(arguments)

        self.script.run = run

    def pass_(self, seconds: float) -> None:
        self.telemetry.clock.advance(seconds)


@pytest.fixture
def standins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stand-ins can be imported, in what looks like a worker of Ray."""
    mine = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in STANDINS}
    for name in mine:
        del sys.modules[name]
    monkeypatch.syspath_prepend(str(HERE / "standins"))
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "workers/default_worker.py"])
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in STANDINS]:
        del sys.modules[name]
    sys.modules.update(mine)


@pytest.fixture
def openrlhf(standins: None) -> Iterator[Openrlhf]:
    """OpenRLHF, watched."""
    with captured(frameworks=("openrlhf", "threads")) as telemetry:
        yield Openrlhf(telemetry)
