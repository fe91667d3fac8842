"""The stand-ins and our tables against the real source of NeMo RL, where `RLOTEL_NEMO_SRC` has a checkout of it.

The source is read, not run: what it needs to run is not needed here.
"""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlotel.integrations.nemo_rl.tables import (
    CHECK_OF_CONTROLLER,
    POLICIES,
    RESUME_OF_CONTROLLER,
    ROLLOUTS,
    STEP,
    SYNCHRONIZERS,
    TIMERS,
    TRAININGS,
)

SOURCE = Path(os.environ.get("RLOTEL_NEMO_SRC", "/nowhere"))
STANDINS = Path(__file__).parent / "standins"

pytestmark = pytest.mark.skipif(
    not (SOURCE / "nemo_rl").is_dir(), reason="RLOTEL_NEMO_SRC is no checkout of NeMo RL"
)

ALWAYS = {
    "nemo_rl.utils.timer:Timer.start": ["self", "label"],
    "nemo_rl.utils.timer:Timer.stop": ["self", "label"],
    "nemo_rl.utils.timer:Timer.reset": ["self", "label"],
    "nemo_rl.utils.logger:Logger.log_metrics": ["self", "metrics", "step", "prefix"],
    "nemo_rl.utils.checkpoint:CheckpointManager.finalize_checkpoint": ["self", "checkpoint_path"],
    "nemo_rl.experience.rollouts:calculate_rewards": ["batch", "task_to_env"],
    "nemo_rl.experience.rollouts:run_multi_turn_rollout": [],
    "nemo_rl.experience.rollouts:run_async_multi_turn_rollout": [],
    "nemo_rl.algorithms.grpo:refit_policy_generation": [],
    "nemo_rl.models.policy.lm_policy:Policy.train": ["self", "data"],
    "nemo_rl.models.policy.lm_policy:Policy.get_logprobs": ["self", "data"],
    "nemo_rl.models.policy.lm_policy:Policy.get_reference_policy_logprobs": ["self", "data"],
}
"""What every version has, with the parameters that we name or count on the place of."""

FROM_0_7 = {
    "nemo_rl.models.policy.tq_policy:TQPolicy.train_from_meta": ["self", "meta"],
    "nemo_rl.models.policy.tq_policy:TQPolicy.prepare_step": ["self", "num_samples"],
}
AFTER_0_7 = {
    "nemo_rl.models.policy.tq_policy:TQPolicy.train_microbatches_from_meta": ["self", "meta"],
    "nemo_rl.models.policy.tq_policy:TQPolicy.finish_train_step": ["self"],
    "nemo_rl.utils.checkpoint:CheckpointManager.begin_finalization": ["self", "checkpoint_path"],
    "nemo_rl.utils.checkpoint:CheckpointManager._rename_checkpoint": ["self", "checkpoint_path"],
    "nemo_rl.utils.checkpoint:CheckpointManager.finalize_pending": ["self"],
    CHECK_OF_CONTROLLER: ["master_config"],
    RESUME_OF_CONTROLLER: ["self", "resume_from_step"],
    **{target: ["self"] for target in SYNCHRONIZERS},
}
NEWEST = "nemo_rl.utils.checkpoint:CheckpointManager.begin_finalization"
"""What only the newest source has that the stand-ins were made from."""

SAYS_NO_MORE = {
    "get_logprobs/shard_data",
    "get_logprobs/submit_logprob_futures",
    "get_reference_policy_logprobs/shard_data",
    "get_reference_policy_logprobs/submit_logprob_futures",
    "idle/buffer_starvation",
    "idle/generation_limit_pause",
    "idle/refit_bubble",
    "idle/refit_event_wait",
    "idle/validation",
    "mask_sample_filter",
    "overlong_filter",
    "prepare_for_generation/transfer_and_update_weights",
}
"""Timers of loops that are inside of others or around them."""


def parameters(root: Path, target: str) -> list[str] | None:
    """The parameters of a function; None where there is no such function."""
    module, _, path = target.partition(":")
    file = root / Path(*module.split(".")).with_suffix(".py")
    if not file.is_file():
        return None
    body: list[ast.stmt] = ast.parse(file.read_text()).body
    for name in path.split("."):
        found = next((node for node in body if getattr(node, "name", None) == name), None)
        if found is None:
            return None
        if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return [argument.arg for argument in (*found.args.args, *found.args.kwonlyargs)]
        assert isinstance(found, ast.ClassDef)
        body = found.body
    raise AssertionError(f"{target} is no function")


def labels() -> Iterator[str]:
    """What loops are timed by."""
    for file in (SOURCE / "nemo_rl" / "algorithms").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in {"time", "start"}
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                yield str(node.args[0].value)


def is_newest() -> bool:
    return parameters(SOURCE, NEWEST) is not None


def test_what_is_watched_in_every_version_is_there() -> None:
    wanted = {
        **ALWAYS,
        **(FROM_0_7 if (SOURCE / "nemo_rl/models/policy/tq_policy.py").exists() else {}),
        **(AFTER_0_7 if is_newest() else {}),
    }
    assert {target: (parameters(SOURCE, target) or [])[: len(names)] for target, names in wanted.items()} == wanted


def test_training_functions_have_the_parameters_that_are_read() -> None:
    present = {target: found for target in TRAININGS if (found := parameters(SOURCE, target)) is not None}
    assert len(present) >= 6
    for target, found in present.items():
        assert {TRAININGS[target].state, "master_config"} <= set(found), target
        assert set(POLICIES) & set(found), target


def test_every_timer_of_a_loop_is_in_the_table_or_says_no_more() -> None:
    assert set(labels()) <= {STEP, *TIMERS, *SAYS_NO_MORE}


def test_the_stand_ins_have_the_signatures_of_the_newest_source() -> None:
    if not is_newest():
        pytest.skip("this is an older version")
    targets = [*ALWAYS, *FROM_0_7, *AFTER_0_7, *TRAININGS]
    targets += [f"nemo_rl.experience.rollouts:{name}" for name in ROLLOUTS]
    found = {target: parameters(STANDINS, target) for target in targets}
    found = {target: names for target, names in found.items() if names is not None}
    assert len(found) >= 30
    assert found == {target: parameters(SOURCE, target) for target in found}
