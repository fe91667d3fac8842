"""The stand-ins and our tables against the real source of SkyRL, where it is installed or unpacked.

The source is read, not run.
"""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlotel.integrations.skyrl.tables import STEP, TIMERS
from tests.frameworks.running import release

STANDINS = Path(__file__).parent / "standins"


def source() -> Path | None:
    found = importlib.util.find_spec("skyrl")
    if found is not None and found.origin is not None:
        return Path(found.origin).parent.parent
    return release("skyrl")


SOURCE = source()
pytestmark = pytest.mark.skipif(SOURCE is None, reason="SkyRL is neither installed nor unpacked here")

READ = {
    "skyrl.train.utils.utils:Timer.__init__": ["self", "message", "update_dict"],
    "skyrl.train.utils.utils:Timer.__enter__": ["self"],
    "skyrl.train.utils.utils:Timer.__exit__": ["self", "exc_type", "exc_val", "exc_tb"],
    "skyrl.train.utils.utils:initialize_ray": ["cfg"],
    "skyrl.train.utils.tracking:Tracking.log": ["self", "data", "step", "commit"],
    "skyrl.train.trainer:RayPPOTrainer.__init__": ["self", "cfg"],
    "skyrl.train.trainer:RayPPOTrainer.eval": ["self"],
    "skyrl.train.trainer:RayPPOTrainer.train": ["self"],
    "skyrl.train.trainer:RayPPOTrainer.fwd_logprobs_values_reward": ["self", "training_input"],
    "skyrl.train.trainer:RayPPOTrainer._execute_forward_pass": ["self", "model"],
    "skyrl.train.trainer:RayPPOTrainer.load_checkpoints": ["self"],
    "skyrl.train.fully_async_trainer:FullyAsyncRayPPOTrainer.train": ["self"],
    "skyrl.train.entrypoints.main_base:BasePPOExp.run": ["self"],
}
"""What is watched, with the parameters that are named or counted on the place of; the stand-ins have it all."""
FOUND_AT_RUN_TIME = {
    "skyrl.train.generators.base:GeneratorInterface.generate": ["self", "input_batch"],
    "skyrl.backends.skyrl_train.workers.worker_dispatch:WorkerDispatch.forward": ["self", "model"],
    "skyrl.backends.skyrl_train.workers.worker_dispatch:WorkerDispatch.optim_step": ["self", "model"],
}
SAYS_NO_MORE = {
    "cleanup_old_checkpoints",
    "init_weight_sync_state",
    "load_checkpoints",  # also where there is none
    "log_train_results",
    "run_training",
    "train_critic_and_policy",
}
"""Timers of trainers that are inside of others or around them, or that measure nothing of training."""


def parameters(root: Path, target: str) -> list[str] | None:
    """The parameters of a function; None where there is no such function."""
    module, _, path = target.partition(":")
    file = root / Path(*module.split(".")).with_suffix(".py")
    body: list[ast.stmt] = ast.parse(file.read_text()).body if file.is_file() else []
    for name in path.split("."):
        found = next((node for node in body if getattr(node, "name", None) == name), None)
        if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return [argument.arg for argument in (*found.args.args, *found.args.kwonlyargs)]
        body = found.body if isinstance(found, ast.ClassDef) else []
    return None


def timers() -> Iterator[str]:
    """What the trainers time themselves with."""
    assert SOURCE is not None
    for name in ("trainer", "fully_async_trainer"):
        for node in ast.walk(ast.parse((SOURCE / "skyrl" / "train" / f"{name}.py").read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Timer":
                assert isinstance(node.args[0], ast.Constant)
                yield str(node.args[0].value)


def test_what_is_watched_is_there() -> None:
    assert SOURCE is not None
    wanted = {**READ, **FOUND_AT_RUN_TIME}
    assert {target: (parameters(SOURCE, target) or [])[: len(names)] for target, names in wanted.items()} == wanted


def test_every_timer_of_a_trainer_is_in_the_table_or_says_no_more() -> None:
    assert set(timers()) <= {STEP, *TIMERS, *SAYS_NO_MORE}


def test_the_stand_ins_have_the_signatures_of_the_source() -> None:
    assert SOURCE is not None
    assert {target: parameters(STANDINS, target) for target in READ} == {
        target: parameters(SOURCE, target) for target in READ
    }
