"""The asynchronous trainers of verl 0.9: rollouts that are made ahead, and logs that tell of several steps."""

from pathlib import Path

import pytest

from rlotel import conformance
from tests.frameworks.verl.comparing import loops, own, phase, seconds
from tests.frameworks.verl.conftest import PROGRAMS, Run, run

ROWS = 8
"""Rollouts of an iteration."""


@pytest.fixture(scope="module")
def one_step_off(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three iterations of `OneStepOffRayTrainer`."""
    return run([str(PROGRAMS / "one_step_off.py")], tmp_path_factory.mktemp("one_step_off"))


@pytest.fixture(scope="module")
def fully_async(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four steps of `FullyAsyncTrainer`, which moves weights and logs after every second."""
    return run([str(PROGRAMS / "fully_async.py")], tmp_path_factory.mktemp("fully_async"))


def kinds(run: Run) -> list[list[str]]:
    return [
        [str(span.attributes["rl.sample.kind"]) for span in own(root) if span.name == "rl.sample"]
        for root in loops(run)
    ]


def test_rollouts_one_step_off_belong_to_the_iteration_that_asked_for_them(one_step_off: Run) -> None:
    # The first one waits for its own, and asks for those of the second, which waits for nothing.
    assert kinds(one_step_off) == [["wait", "generate", "generate"], ["wait", "generate"], ["wait"]]
    waited = [seconds(span) for root in loops(one_step_off) for span in own(root)[:1]]
    assert waited[0] > max(waited[1:])
    generated = one_step_off.total("rl.sample.duration", **{"rl.sample.kind": "generate"})
    assert generated >= one_step_off.worked("generate")


def test_nested_timers_one_step_off_are_one_transfer(one_step_off: Run) -> None:
    for root, data in zip(loops(one_step_off), one_step_off.trained, strict=True):
        (transfer,) = [span for span in own(root) if span.name == "rl.sync"]
        over = seconds(transfer) - data["timing_s/sync_rollout_weights"]
        assert -0.0001 < over < 0.25
    (transfers,) = one_step_off.capture.latest("rl.sync.duration")
    assert transfers.count == 4  # with the one before the first iteration


def test_a_checkpoint_after_the_step_is_that_iterations(one_step_off: Run) -> None:
    saves = one_step_off.capture.spans("rl.checkpoint")
    assert [save.parent_id or None for save in saves] == [None, None]
    (step,) = one_step_off.capture.latest("rl.checkpoint.step")
    assert step.value == 3


def test_every_step_of_fully_async_is_an_iteration(fully_async: Run) -> None:
    roots = loops(fully_async)
    assert [root.span.attributes["rl.loop.iteration"] for root in roots] == [1, 2, 3, 4]
    moved = [[phase(span) for span in own(root)][-1] == ("sync", None) for root in roots]
    assert moved == [False, True, False, True]
    assert kinds(fully_async) == [["wait"]] * 4
    (iterations,) = fully_async.capture.latest("rl.loop.duration")
    assert iterations.count == 4
    assert fully_async.total("rl.phase.failures") == 0


def test_fully_async_counts_every_step_whatever_was_logged(fully_async: Run) -> None:
    assert len(fully_async.trained) < 4
    assert fully_async.total("rl.sample.samples") == 4 * ROWS
    assert fully_async.total("rl.train.steps") == 4 * 2
    assert fully_async.total("rl.train.tokens") == fully_async.total("rl.sample.tokens") > 0


def test_durations_of_fully_async_add_up_to_verls(fully_async: Run) -> None:
    """Its second log tells of the second and the third step, added up."""
    second, third = loops(fully_async)[1:3]
    data = fully_async.trained[-1]
    assert seconds(second.span) + seconds(third.span) == pytest.approx(data["timing_s/step"], abs=0.01)
    (moved,) = [span for span in own(second) if span.name == "rl.sync"]
    assert seconds(moved) == pytest.approx(data["timing_s/timing_s/param_sync"], abs=0.01)


@pytest.mark.parametrize("name", ["one_step_off", "fully_async"])
def test_nothing_breaks_the_conventions(name: str, request: pytest.FixtureRequest) -> None:
    ended: Run = request.getfixturevalue(name)
    assert conformance.check(ended.lines) == []
    assert ended.total("rlotel.errors") == 0


def test_ppo_tells_the_critic_from_the_actor(tmp_path: Path) -> None:
    ended = run(
        [str(PROGRAMS / "v0.py"), "algorithm.adv_estimator=gae", f"critic.model.path={tmp_path}/tiny-qwen2"],
        tmp_path,
        RLOTEL_PEAK_FLOPS="1e9",
    )
    trained = {point.attributes["rl.role"]: point for point in ended.capture.latest("rl.train.duration")}
    assert {role: point.count for role, point in trained.items()} == {"actor": 3, "critic": 3}
    (value,) = ended.capture.latest("rl.train.loss", **{"rl.loss.type": "value"})
    assert value.value == ended.trained[-1]["critic/vf_loss"]
    # With both models and the GPU known, ours is the model FLOPs of both updates over the time of both.
    (mfu,) = ended.capture.latest("rl.train.mfu")
    assert "rl.role" not in mfu.attributes
    flops = ended.total("rl.train.flops")
    spent = sum(float(point.sum or 0) for point in trained.values())
    assert mfu.value == pytest.approx(flops / spent / 1e9, rel=0.3)
    assert ended.capture.latest("rl.loop.mfu") != []
