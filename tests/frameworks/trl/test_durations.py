"""What phases and iterations last is what TRL's own timers and callbacks measure."""

import pytest

from tests.frameworks.running import Run, lines_of, phase, seconds
from tests.frameworks.trl.conftest import timed

CLOSE = 0.001
"""Seconds that our bracket around a function may differ from a timer inside of it."""
FEW = 0.05
"""Seconds that what lies between our bracket and a timer around or inside of it may take."""
PREEMPTED = 0.25
"""The same where something else got the processor."""


def of(run: Run, name: str) -> list[float]:
    """Seconds of a phase in each iteration that has it."""
    return [
        sum(seconds(node.span) for node in root.children if phase(node.span) == name)
        for root in run.loops
        if any(phase(node.span) == name for node in root.children)
    ]


def differences(ours: list[float], theirs: list[float]) -> list[float]:
    return [one - other for one, other in zip(ours, theirs, strict=True)]


def alike(ours: list[float], theirs: list[float]) -> bool:
    """Whether they are equal in one iteration, and nearly so in all."""
    found = [abs(difference) for difference in differences(ours, theirs)]
    return min(found) <= CLOSE and max(found) <= PREEMPTED


def first(several: list[list[float]]) -> list[float]:
    return [one[0] for one in several]


def steps(run: Run) -> list[float]:
    """How long each step was, as a callback saw it."""
    return [line["seconds"] for line in lines_of(run.folder / "steps.jsonl")]


def test_scoring_lasts_as_long_as_the_timer_of_trl_says(grpo: Run) -> None:
    assert alike(of(grpo, "reward"), first(timed(grpo, "_calculate_rewards")))


def test_the_reference_model_takes_as_long_as_the_timer_of_trl_says(grpo: Run) -> None:
    # The passes of the update, which come later, are parts of it.
    assert alike(of(grpo, "ref_logprob"), first(timed(grpo, "_get_per_token_logps_and_entropies")))


def test_rollouts_and_their_scoring_are_nearly_all_that_trl_prepares_inputs_with(grpo: Run) -> None:
    parts = [of(grpo, name) for name in ("sample", "ref_logprob", "reward")]
    longer = differences(list(map(sum, timed(grpo, "_prepare_inputs"))), list(map(sum, zip(*parts, strict=True))))
    assert min(longer) >= -CLOSE
    assert min(longer) < FEW  # padding, and the computation of advantages


def test_rollouts_take_as_long_as_the_model_generates_and_hardly_longer(grpo: Run) -> None:
    longer = differences(of(grpo, "sample"), first(timed(grpo, "transformers.generate")))
    assert min(longer) >= -CLOSE
    assert min(longer) < FEW  # tokenizing


def test_an_iteration_is_the_loading_of_batches_and_what_callbacks_see_as_a_step(grpo: Run) -> None:
    without_loading = differences([seconds(root.span) for root in grpo.loops], of(grpo, "data"))
    assert alike(without_loading, steps(grpo))


def test_the_update_is_all_of_a_step_that_does_not_prepare_inputs(grpo: Run) -> None:
    theirs = differences(steps(grpo), list(map(sum, timed(grpo, "_prepare_inputs"))))
    longer = differences(theirs, of(grpo, "train"))
    assert min(map(abs, longer)) <= 2 * CLOSE
    assert max(map(abs, longer)) <= PREEMPTED


def test_two_generations_in_a_step_are_two_intervals_of_one_phase(rloo: Run) -> None:
    for root in rloo.loops:
        names = [phase(node.span) for node in sorted(root.children, key=lambda node: node.span.start_ns)]
        once = ["sample", "logprob", "ref_logprob", "reward", "train"]
        assert names == ["data", *once, *once]
    assert rloo.observations("rl.sample.duration") == 3
    assert rloo.observations("rl.train.duration") == 3
    assert rloo.total("rl.sample.duration") == pytest.approx(sum(of(rloo, "sample")), abs=CLOSE)


def test_weights_are_sent_inside_of_the_rollouts_that_need_them(tools: Run) -> None:
    for root in tools.loops:
        (sample,) = [node for node in root.children if phase(node.span) == "sample"]
        assert [phase(node.span) for node in sample.children] == ["sync", "tool", "tool"]
        sync = sample.children[0].span
        assert (sync.attributes["rl.sync.source"], sync.attributes["rl.sync.destination"]) == ("learner", "vllm")
    assert tools.total("rl.sync.duration") >= tools.worked("sync")
    assert tools.total("rl.sync.duration") == pytest.approx(
        sum(map(sum, timed(tools, "sync_weights"))), abs=PREEMPTED
    )


def test_a_tool_phase_is_what_of_the_tool_loop_the_model_does_not_generate_in(tools: Run) -> None:
    spent = tools.total("rl.phase.duration", **{"rl.phase.name": "tool"})
    assert spent >= tools.worked("tool")
    generated = tools.total("rl.phase.time", **{"rl.phase.name": "sample"})
    assert generated >= tools.worked("turn")
    whole = tools.total("rl.sample.duration")
    assert whole == pytest.approx(spent + generated + tools.total("rl.sync.duration"), abs=CLOSE)


def test_a_wait_for_rollouts_is_as_long_as_asyncgrpo_says(asynchronous: Run) -> None:
    waits = [line["perf/rollout_wait_s"] for line in asynchronous.logged if "loss" in line]
    longer = differences(of(asynchronous, "sample"), waits)
    assert min(longer) >= 0
    assert min(longer) < FEW  # putting batches together
    kinds = {
        node.span.attributes["rl.sample.kind"]
        for root in asynchronous.loops
        for node in root.children
        if phase(node.span) == "sample"
    }
    assert kinds == {"wait"}


def test_a_transfer_of_weights_is_as_long_as_asyncgrpo_says(asynchronous: Run) -> None:
    told = [line["perf/weight_sync_s"] for line in asynchronous.logged if "loss" in line]
    # The transfer before the first iteration is of none, and in the first log.
    assert alike(of(asynchronous, "sync")[1:], told[1:])
    assert asynchronous.observations("rl.sync.duration") == 4
