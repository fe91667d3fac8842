"""AReaL keeps what every integration promises; and what its stand-ins say of it is so."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from rlotel.integrations.areal.tables import OCCASIONAL, TIMERS
from tests.frameworks.areal.conftest import STANDINS, WATCHED
from tests.frameworks.areal.real.conftest import path
from tests.frameworks.contract import Contract
from tests.frameworks.running import OFFLINE, Run


class TestContract(Contract):
    framework = "areal"
    identity: Mapping[str, str] = MappingProxyType(
        {
            "rl.system": "areal",
            "rl.system.version": "1.0.4",
            "rl.algorithm": "PPO",
            "rl.model.name": "counting-0.1B",
            "rl.environment.name": "gsm8k",
        }
    )
    iterations: Sequence[int] = (1, 2, 3, 4)
    phases = frozenset({"sample", "value", "ref_logprob", "logprob", "advantage", "train", "sync", "data"})
    counted = frozenset(
        {
            "rl.sample.samples",
            "rl.sample.episodes",
            "rl.sample.tokens",
            "rl.sample.staleness",
            "rl.samples.rate",
            "rl.tokens.rate",
            "rl.train.steps",
            "rl.train.tokens",
            "rl.train.loss",
            "rl.train.clip.ratio",
            "rl.kl.divergence",
            "rl.entropy",
            "rl.grad_norm",
            "rl.learning_rate",
            "rl.environment.reward.mean",
            "rl.environment.episode.length.mean",
            "rl.environment.episode.turns.mean",
            "rl.evaluation.score",
            "rl.checkpoint.duration",
            "rl.checkpoint.step",
            "rl.worker.duration",
            "rl.reward.duration",
        }
    )
    modules = (
        "areal.trainer.rl_trainer",
        "areal.trainer.sft_trainer",
        "areal.trainer.dpo_trainer",
        "areal.trainer.rw_trainer",
        "areal.utils.stats_tracker",
        "areal.utils.stats_logger",
        "areal.utils.timeutil",
        "areal.utils.saver",
        "areal.utils.recover",
        "areal.infra.controller.rollout_controller",
        "areal.infra.workflow_executor",
        "areal.infra.sandbox.runner",
        "areal.api.reward_api",
    )
    elsewhere = frozenset({"rl.reward.duration"})
    overlaps = True

    def environment(self) -> dict[str, str]:
        return {**os.environ, **OFFLINE, "RLOTEL_GPU": "0", "PYTHONPATH": os.pathsep.join(map(str, path()))}


def test_the_run_of_a_worker_keeps_the_shape_of_a_trace(workers: Run) -> None:
    checks = TestContract()
    checks.iterations = (1, 2, 3)
    checks.phases = frozenset({"sample", "advantage", "train", "sync", "data"})
    checks.identity = {**checks.identity, "rl.algorithm": "GRPO"}
    checks.test_each_iteration_is_one_trace_with_its_phases(workers)
    checks.test_a_phase_lies_within_what_it_is_inside_of(workers)
    checks.test_what_is_of_the_loop_is_told_by_one_process(workers)
    checks.test_everything_says_whose_it_is(workers)
    checks.test_nothing_breaks_the_conventions(workers)
    checks.test_nothing_is_sent_twice(workers)
    checks.test_no_error_of_ours_and_no_value_that_was_refused(workers)


SIGNATURES = """
import importlib, inspect, json, sys
def parameters(target):
    module, _, path = target.partition(":")
    found = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return list(inspect.signature(inspect.unwrap(found)).parameters)
print(json.dumps({target: parameters(target) for target in sys.argv[1:]}))
"""


def signatures(where: str) -> dict[str, list[str]]:
    """The parameters of everything that is watched, in a package of that path."""
    done = subprocess.run(
        [sys.executable, "-c", SIGNATURES, *WATCHED],
        env={**os.environ, **OFFLINE, "PYTHONPATH": where},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_the_stand_ins_have_the_signatures_of_the_real_package() -> None:
    assert signatures(str(STANDINS)) == signatures(os.pathsep.join(map(str, path())))


def test_every_timer_of_a_trainer_is_in_the_table() -> None:
    folder = next(place for place in (*path(), *map(Path, sys.path)) if (place / "areal/trainer").is_dir())
    timers = {
        node.args[0].value
        for file in (folder / "areal/trainer").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") == "record_timing"
        and isinstance(node.args[0], ast.Constant)
    }
    assert len(timers) >= 15
    assert timers <= {*TIMERS, *OCCASIONAL}
