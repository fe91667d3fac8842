"""verl's sources have what is watched, in every release that is promised, and no timer that nobody knows."""

import ast
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

from rlotel.integrations import verl
from rlotel.integrations.verl import rollouts, workers
from rlotel.integrations.verl.tables import GAUGES, MFU, STEP, TIMERS
from tests.frameworks.verl.conftest import INSTALLED, RELEASES

ALL = ("0.5.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", INSTALLED)

ARGUMENTS = {
    "verl.utils.profiler.performance:_timer": (["name", "timing_raw"], ALL),
    "verl.utils.tracking:Tracking.__init__": (
        ["self", "project_name", "experiment_name", "default_backend", "config"],
        ALL,
    ),
    "verl.utils.tracking:Tracking.log": (["self", "data", "step", "backend"], ALL),
    "verl.trainer.ppo.metric_utils:_compute_response_info": (["batch"], ALL),
    "verl.trainer.ppo.ray_trainer:RayPPOTrainer.fit": (["self"], ALL),
    "verl.trainer.ppo.ray_trainer:RayPPOTrainer._validate": (["self"], ("0.5.0", "0.6.1")),
    "verl.trainer.ppo.ray_trainer:RayPPOTrainer._load_checkpoint": (["self"], ALL),
    "verl.utils.rollout_trace:rollout_trace_attr": (
        ["sample_index", "step", "rollout_n", "name", "validate", "trace"],
        ALL[2:],
    ),
    "verl.trainer.constants_ppo:get_ppo_ray_runtime_env": (["config"], ALL[5:]),
    "verl.checkpoint_engine.base:CheckpointEngineManager.update_weights": (["self", "global_steps"], ALL[3:]),
    "verl.utils.ray_utils:auto_await": (["func"], ALL[3:]),
    "verl.utils.tracking:RLInsightLogger.trace_state": (["cls", "state_name", "state_lane_id", "labels"], ALL[5:]),
    "verl.trainer.ppo.v1.trainer_base:PPOTrainer.__init__": (["self", "config"], ALL[5:]),
    "verl.trainer.ppo.v1.trainer_base:PPOTrainer._compute_metrics": (
        ["self", "batch", "metrics", "timing_raw", "global_steps", "epoch"],
        ALL[5:],
    ),
}
"""By what is watched, its parameters and the releases that have it so."""

UNTOLD = frozenset({"start_profile", "stop_profile", "generate_sequences", "reshard"})
"""Timers that tell nothing: of verl's profiler, and of parts of rollouts."""

CASES = [(target, names, release) for target, (names, releases) in ARGUMENTS.items() for release in releases]


def source(release: str) -> Path:
    if release != INSTALLED:
        return RELEASES / release / "verl"
    spec = importlib.util.find_spec("verl")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def parameters(release: str, target: str) -> list[str]:
    module, path = target.split(":")
    file = source(release).parent / Path(*module.split(".")).with_suffix(".py")
    found: ast.AST = ast.parse(file.read_text())
    for name in path.split("."):
        inside = [node for node in ast.iter_child_nodes(found) if getattr(node, "name", None) == name]
        assert inside, f"verl {release} has no {target}"
        found = inside[-1]
    assert isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)
    given = found.args
    extra = [one for one in (given.vararg, given.kwarg) if one is not None]
    return [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, *extra)]


@pytest.mark.parametrize(("target", "names", "release"), CASES)
def test_what_is_watched_has_the_parameters_that_are_read(target: str, names: list[str], release: str) -> None:
    assert parameters(release, target) == names


def test_what_is_watched_is_what_is_checked_here() -> None:
    watched = set(re.findall(r'"(verl\.[\w.]+:[\w.]+)"', inspect.getsource(verl)))
    methods = ("fit", "_validate", "_load_checkpoint")
    watched |= {f"{trainer}.{method}" for trainer in verl.TRAINERS for method in methods}
    watched -= {*verl.TRAINERS, *verl.FITS}
    unchecked = {target for target in watched if not target.startswith("verl.trainer.ppo.v1.")} - ARGUMENTS.keys()
    assert unchecked == set()


@pytest.mark.parametrize("release", ALL)
def test_every_timer_of_that_release_is_known(release: str) -> None:
    known = {STEP, *TIMERS, *rollouts.TIMERS, *UNTOLD}
    used = {
        name
        for file in source(release).rglob("*.py")
        for name in re.findall(r'(?:marked_timer|simple_timer)\(\s*f?"([^"]+)"', file.read_text())
    }
    assert used - known == set()


@pytest.mark.parametrize("release", ALL)
def test_the_weights_method_looks_at_its_caller_where_it_is_watched_so(release: str) -> None:
    file = source(release) / "checkpoint_engine" / "base.py"
    if file.exists() and "class CheckpointEngineManager" in (text := file.read_text()):
        assert re.search(r"@auto_await\s+async def update_weights", text)


def test_every_logged_key_is_written_somewhere_in_some_release() -> None:
    """Without its first part, which verl adds to what its workers tell."""
    texts = "\n".join(file.read_text() for release in ALL for file in source(release).rglob("*.py"))
    for key in (*GAUGES, *MFU):
        assert key in texts or f'"{key.partition("/")[2]}"' in texts, key


def test_every_state_of_a_worker_is_entered_by_the_installed_release() -> None:
    text = "\n".join(file.read_text() for file in source(INSTALLED).rglob("*.py"))
    assert {state for state in workers.STATES if f'role="{state}"' not in text} == set()
