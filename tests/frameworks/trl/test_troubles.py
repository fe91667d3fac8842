"""What fails is an error where it failed, and the exception is the program's; a resumed training shows."""

import pytest

from tests.frameworks.running import Run, phase, seconds


def errors(run: Run) -> list[tuple[object, str, object]]:
    """By iteration, the phases that failed, and with what."""
    return [
        (root.span.attributes["rl.loop.iteration"], phase(node.span), node.span.attributes["error.type"])
        for root in run.loops
        for node in (root, *root.children)
        if "error.type" in node.span.attributes
    ]


def test_a_failing_reward_and_a_failing_optimizer_are_errors_where_they_failed(troubles: Run) -> None:
    # The program itself makes sure that it gets the exceptions that it raised.
    assert errors(troubles) == [
        (5, "loop", "__main__.RewardBroken"),
        (5, "reward", "__main__.RewardBroken"),
        (8, "loop", "__main__.StepBroken"),
        (8, "train", "__main__.StepBroken"),
    ]
    failures = {
        str(p.attributes["rl.phase.name"]): p.value
        for p in troubles.capture.latest("rl.phase.failures")
        if p.value
    }
    assert failures == {"loop": 2, "reward": 1, "train": 1}
    assert troubles.total("rl.train.steps") == 8


def test_a_training_that_resumes_does_the_failed_iteration_again(troubles: Run) -> None:
    numbers = [root.span.attributes["rl.loop.iteration"] for root in troubles.loops]
    assert numbers == [1, 2, 3, 4, 5, 5, 6, 7, 8, 9]
    assert len({root.span.trace_id for root in troubles.loops}) == 10
    assert troubles.total("rl.restarts") == 1


def test_a_checkpoint_is_restored_once_without_what_is_prepared_meanwhile(troubles: Run) -> None:
    checkpoints = [span for span in troubles.capture.spans() if span.name == "rl.checkpoint"]
    operations = [span.attributes["rl.checkpoint.operation"] for span in checkpoints]
    assert operations == ["save", "save", "restore", "save"]
    (restored,) = [span for span in checkpoints if span.attributes["rl.checkpoint.operation"] == "restore"]
    resumed = next(root.span for root in troubles.loops[5:])
    assert restored.end_ns < resumed.start_ns
    found = troubles.total("rl.checkpoint.duration", **{"rl.checkpoint.operation": "restore"})
    assert found == pytest.approx(seconds(restored), abs=0.001)
    assert troubles.gauge("rl.checkpoint.step")[-1] == 6


def test_a_checkpoint_and_an_evaluation_are_of_no_iteration(grpo: Run) -> None:
    between = [
        span for span in grpo.capture.spans() if phase(span) in ("evaluate", "checkpoint") and not span.parent_id
    ]
    assert [phase(span) for span in sorted(between, key=lambda span: span.start_ns)] == [
        "evaluate",
        "checkpoint",
        "evaluate",
        "checkpoint",
    ]
    assert grpo.gauge("rl.checkpoint.step")[-1] == 4
    assert grpo.total("rl.checkpoint.operations") == 2
