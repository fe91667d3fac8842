"""Stand-ins for SkyRL on the path, and a session that watches them."""

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlotel.testing import Telemetry, captured

STANDINS = Path(__file__).parent / "standins"
SETTINGS: Mapping[str, Any] = {
    "trainer.algorithm.advantage_estimator": "grpo",
    "trainer.policy.model.path": "Qwen/Qwen3-0.6B",
    "trainer.train_batch_size": 4,
    "trainer.policy_mini_batch_size": 2,
    "trainer.update_epochs_per_batch": 2,
    "trainer.ckpt_path": "/checkpoints",
    "trainer.placement.colocate_all": True,
    "trainer.placement.policy_num_nodes": 1,
    "trainer.placement.policy_num_gpus_per_node": 8,
    "generator.n_samples_per_prompt": 2,
    "generator.inference_engine.backend": "vllm",
    "environment.env_class": "gsm8k",
}


def configuration(settings: Mapping[str, Any]) -> Any:
    """SkyRL's configuration, by dotted paths."""
    found = SimpleNamespace()
    for path, value in settings.items():
        *folders, name = path.split(".")
        place = found
        for folder in folders:
            place.__dict__.setdefault(folder, SimpleNamespace())
            place = getattr(place, folder)
        setattr(place, name, value)
    return found


class Column:
    """A mask, as far as it is looked into: tokens of each row."""

    device = SimpleNamespace(type="cpu")

    def __init__(self, lengths: Sequence[int]) -> None:
        self._lengths = list(lengths)

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, rows: slice) -> "Column":
        return Column(self._lengths[rows])

    def sum(self, dim: int) -> "Column":
        return self

    def tolist(self) -> list[int]:
        return self._lengths


class Batch(dict[str, Any]):
    """Rows to train on; the last `pad_size` of them were made up."""

    def __init__(self, lengths: Sequence[int], pad_size: int = 0) -> None:
        super().__init__(attention_mask=Column(lengths))
        self.metadata = {"pad_size": pad_size}


def asked(phase: str = "train") -> dict[str, Any]:
    """What a generator is asked for."""
    return {"prompts": [], "batch_metadata": SimpleNamespace(global_step=1, training_phase=phase)}


def answered(prompts: Sequence[int], responses: Sequence[int], **more: Any) -> dict[str, Any]:
    """What it answers, by numbers of tokens."""
    ids = {"prompt_token_ids": [range(n) for n in prompts], "response_ids": [range(n) for n in responses]}
    return {**ids, "rewards": [0.0] * len(responses), "stop_reasons": ["stop"] * len(responses), **more}


class Sky:
    """SkyRL in one test."""

    def __init__(self, telemetry: Telemetry, package: str) -> None:
        self.telemetry = telemetry
        self.package = package
        self.script = self.module("script")
        self.script.now = telemetry.clock.monotonic
        self.script.run = self._run
        self.gym = importlib.import_module("skyrl_gym")
        self.parts: dict[str, Any] = {}
        """What stand-in functions do, by name."""
        sky = self

        class Generator:
            async def generate(self, input_batch: Any, disable_tqdm: bool = False) -> Any:
                return sky.script.run("generate", locals())

        class Environment:
            def step(self, action: Any) -> Any:
                return sky.script.run("step", locals())

        class Dispatch:
            def forward(self, model: str, data: Any) -> Any:
                return sky.script.run("forward", locals())

            def optim_step(self, model: str) -> Any:
                return sky.script.run("optim_step", locals())

        self.generator, self.environment, self.dispatch = Generator, Environment, Dispatch

    def _run(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return self.parts[name](arguments) if name in self.parts else None

    def module(self, name: str) -> Any:
        return importlib.import_module(f"{self.package}.{name}")

    def trainer(self, kind: str = "sync", settings: Mapping[str, Any] | None = None) -> Any:
        """A trainer, `sync` or `async`, with settings by their dotted paths."""
        given = {**SETTINGS, **(settings or {})}
        classes = {
            "sync": self.module("trainer").RayPPOTrainer,
            "async": self.module("fully_async_trainer").FullyAsyncRayPPOTrainer,
        }
        tracker = self.module("utils.tracking").Tracking()
        trainer = classes[kind](configuration(given), tracker, None, None, None, self.generator())
        trainer.dispatch = self.dispatch()
        return trainer

    @contextmanager
    def timer(self, name: str, seconds: float = 0.0) -> Iterator[None]:
        """Something that the trainer times, which takes so long at least."""
        with self.module("utils.utils").Timer(name):
            self.pass_(seconds)
            yield

    def pass_(self, seconds: float) -> None:
        self.telemetry.clock.advance(seconds)

    def make_environment(self) -> Any:
        self.gym.register("made-up", self.environment)
        return self.gym.make("made-up")

    def run(self, coroutine: Any) -> Any:
        """Run a stand-in coroutine, which awaits nothing."""
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value
        raise AssertionError("a stand-in awaits something")

    def generate(self, trainer: Any, phase: str = "train") -> Any:
        """Let a trainer's generator make rollouts."""
        return self.run(trainer.generator.generate(asked(phase)))

    def log(self, trainer: Any, **data: Any) -> None:
        """Log an iteration, as all trainers do."""
        trainer.tracker.log({**data, "trainer/global_step": trainer.global_step}, trainer.global_step)

    def value(self, metric: str, **match: Any) -> float | None:
        return self.telemetry.value(metric, **{f"rl.{name}".replace("_", "."): match[name] for name in match})

    def names(self) -> list[str]:
        """The phases that have ended so far, and the loops."""
        return [
            str(span.attributes.get("rl.phase.name", span.name.removeprefix("rl.")))
            for span in self.telemetry.spans()
        ]


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("skyrl", "skyrl_train", "skyrl_gym")]:
        del sys.modules[name]


@contextmanager
def watched(folder: Path, package: str = "skyrl.train", environ: Mapping[str, str] | None = None) -> Iterator[Sky]:
    """SkyRL, by one of the names that the package has had, and a session that watches it."""
    (folder / "skyrl_train").symlink_to(STANDINS / "skyrl" / "train")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.syspath_prepend(str(STANDINS))
        forget()
        try:
            with captured(environ, frameworks=("skyrl", "threads")) as telemetry:
                yield Sky(telemetry, package)
        finally:
            forget()


@pytest.fixture
def sky(tmp_path: Path) -> Iterator[Sky]:
    with watched(tmp_path) as sky:
        yield sky
