"""A run that goes on from a checkpoint and breaks off: an optimizer step fails."""

from tests.frameworks.running import Run, phase


def test_it_goes_on_where_it_was(broken: Run) -> None:
    assert [root.span.attributes["rl.loop.iteration"] for root in broken.loops] == [5, 6]
    restored = broken.capture.latest("rl.checkpoint.duration", **{"rl.checkpoint.operation": "restore"})
    assert [point.count for point in restored] == [1]
    assert float(restored[0].sum or 0) >= broken.worked("load") > 0
    first = min(broken.capture.spans("rl.sync"), key=lambda span: span.start_ns)
    assert first.start_ns < broken.loops[0].span.start_ns  # the engines get the restored weights


def test_a_failing_optimizer_step_passes_through_and_is_told(broken: Run) -> None:
    assert "FloatingPointError: the optimizer's step overflowed" in broken.output
    whole, failed = broken.loops
    assert "error.type" not in whole.span.attributes
    kind = str(failed.span.attributes["error.type"])
    assert "FloatingPointError" in kind
    train = [node.span for node in failed.children if phase(node.span) == "train"]
    assert [span.attributes["error.type"] for span in train] == [kind]
    assert broken.total("rl.phase.failures", **{"rl.phase.name": "train"}) == 1
    assert broken.observations("rl.loop.duration", **{"error.type": kind}) == 1
    assert broken.total("rl.train.steps") == 2  # those of the whole one
    states = {str(p.attributes["rl.run.state"]): p.value for p in broken.capture.latest("rl.run.status")}
    assert {state for state, value in states.items() if value} == {"failed"}


def test_a_reward_model_is_timed_in_the_trainer(broken: Run) -> None:
    (point,) = broken.capture.latest("rl.reward.duration")
    assert point.count == 2
    assert float(point.sum or 0) >= broken.worked("reward model")
    scored = [node.span for root in broken.loops for child in root.children for node in child.children]
    assert [phase(span) for span in scored].count("reward") == 2


def test_a_kl_that_is_a_loss_is_told_as_that_too(broken: Run) -> None:
    (loss,) = broken.capture.latest("rl.train.loss", **{"rl.loss.type": "kl_divergence"})
    (kl,) = broken.capture.latest("rl.kl.divergence", **{"rl.kl.reference": "reference"})
    assert loss.value == kl.value == 0.01
