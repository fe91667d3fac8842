"""Stand-ins for AReaL on the path, and a session that watches them."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlotel.testing import Telemetry, captured

HERE = Path(__file__).parent
STANDINS = HERE / "standins"
WATCHED = (
    "areal.trainer.rl_trainer:PPOTrainer.__init__",
    "areal.trainer.rl_trainer:PPOTrainer.train",
    "areal.trainer.sft_trainer:SFTTrainer.train",
    "areal.trainer.dpo_trainer:DPOTrainer.train",
    "areal.trainer.rw_trainer:RWTrainer.train",
    "areal.utils.stats_tracker:record_timing",
    "areal.utils.stats_logger:StatsLogger.__init__",
    "areal.utils.stats_logger:StatsLogger.commit",
    "areal.utils.timeutil:EpochStepTimeFreqCtl.check",
    "areal.utils.saver:Saver.save",
    "areal.utils.recover:RecoverHandler.load",
    "areal.utils.recover:RecoverHandler._load_checkpoint",
    "areal.infra.controller.rollout_controller:RolloutController._collective_rpc",
    "areal.infra.workflow_executor:WorkflowExecutor._create_workflow_task",
    "areal.infra.remote_inf_engine:GroupedRolloutWorkflow.__init__",
    "areal.infra.sandbox.runner:DaytonaRunner.run",
    "areal.api.reward_api:AsyncRewardWrapper.__init__",
    "areal.api.reward_api:AsyncRewardWrapper.__call__",
    "areal.infra.remote_inf_engine:RemoteInfEngine.launch_server",
    "areal.engine.fsdp_engine:FSDPEngine.initialize",
    "areal.trainer.ppo.actor:PPOActor.__init__",
    "areal.trainer.ppo.critic:PPOCritic.compute_values",
    "areal.api.alloc_mode:ModelAllocation.from_str",
)
"""What the stand-ins must have the signatures of."""


def settings(**given: Any) -> SimpleNamespace:
    """A configuration, with what is given beside or in place of the usual, by dotted path with `__` for a dot."""
    made = SimpleNamespace(
        train_dataset=SimpleNamespace(path="openai/gsm8k", batch_size=2),
        gconfig=SimpleNamespace(n_samples=2),
        actor=SimpleNamespace(path="Qwen/Qwen3-8B", backend="fsdp:d4", ppo_n_minibatches=2, kl_ctl=0.0),
        rollout=SimpleNamespace(backend="sglang:d2t2"),
        critic=None,
        ref=None,
        teacher=None,
        saver=SimpleNamespace(mode="auto", fileroot="/checkpoints"),
        recover=SimpleNamespace(mode="disabled", fileroot="/checkpoints"),
    )
    for path, value in given.items():
        *places, name = path.split("__")
        found: Any = made
        for place in places:
            found = getattr(found, place)
        setattr(found, name, value)
    return made


class Areal:
    """AReaL in one test."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry
        self.script = self.module("script")
        self.script.now = telemetry.clock.monotonic
        self.timed: list[tuple[str, float]] = self.module("utils.stats_tracker").DEFAULT_TRACKER.timed

    def module(self, name: str) -> Any:
        return importlib.import_module(f"areal.{name}")

    def play(self, **functions: Callable[..., Any]) -> None:
        """Say what stand-in functions do; each gets their arguments. Others do nothing."""

        def run(name: str, arguments: Mapping[str, Any]) -> Any:
            return functions[name](arguments) if name in functions else None

        self.script.run = run

    def logger(self, config: Any) -> Any:
        return self.module("utils.stats_logger").StatsLogger(config, None)

    def trainer(self, config: Any, name: str = "rl_trainer:PPOTrainer", recovered: int | None = None) -> Any:
        """A trainer that has its logger, and goes on after the global step that was recovered."""
        module, _, kind = name.partition(":")
        made = getattr(self.module(f"trainer.{module}"), kind)(config)
        self.logger(config)
        if recovered is not None:
            made.recover_info = SimpleNamespace(last_step_info=SimpleNamespace(global_step=recovered))
        return made

    def time(self, name: str, seconds: float = 1.0, inside: Callable[[], object] = lambda: None) -> None:
        """What takes time inside of one of AReaL's timers."""
        with self.module("utils.stats_tracker").record_timing(name):
            self.pass_(seconds)
            inside()

    def commit(self, global_step: int, **data: float) -> None:
        logger = self.module("utils.stats_logger").StatsLogger
        logger.commit(SimpleNamespace(), 0, global_step, global_step, data)

    def due(self, result: bool = True) -> None:
        """It is looked up whether something is due, and it is."""
        before = self.script.run
        self.script.run = lambda name, arguments: result if name == "check" else before(name, arguments)
        self.module("utils.timeutil").EpochStepTimeFreqCtl().check(epochs=0, steps=1)
        self.script.run = before

    def pass_(self, seconds: float) -> None:
        self.telemetry.clock.advance(seconds)


def steps(*what: Callable[[], object]) -> Callable[[], None]:
    """One after the other."""

    def run() -> None:
        for one in what:
            one()

    return run


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "areal"]:
        del sys.modules[name]


@pytest.fixture
def standins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stand-ins can be imported."""
    monkeypatch.syspath_prepend(str(STANDINS))
    forget()
    yield
    forget()


@pytest.fixture
def areal(standins: None) -> Iterator[Areal]:
    """AReaL, watched."""
    with captured(frameworks=("areal", "threads")) as telemetry:
        yield Areal(telemetry)
    assert "RLOTEL_DEFAULTS" not in os.environ, "what workers are told must be taken back"
