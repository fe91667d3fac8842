"""The demo's loop: what it reports of itself, and that reporting changes nothing in it."""

import ast
import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rlotel
from rlotel.capture import SpanNode
from rlotel.demo import loop
from rlotel.demo.checkpoints import Checkpoints
from rlotel.demo.mishaps import Mishaps
from rlotel.demo.policy import Floats, Rollouts
from rlotel.demo.settings import Settings
from rlotel.demo.state import Run, start
from rlotel.demo.verifier import score
from rlotel.receiver import Receiver
from rlotel.testing import Telemetry

SMALL = Settings(iterations=4, prompts=8, group_size=4, hidden=16, epochs=2, minibatches=2)
STEPS_AN_ITERATION = SMALL.epochs * SMALL.minibatches
PHASES = ["rl.sample", "rl.reward", "ref_logprob", "rl.train", "rl.sync"]
WITH_CHECKPOINT = [*PHASES, "rl.checkpoint", "evaluate"]

Curve = tuple[list[float], list[float], str]


def verify(rollouts: Rollouts) -> Floats:
    """The sandbox's verifier, without its sandbox."""
    return np.array([score(prompt, completion) for prompt, completion in rollouts.texts()])


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return start(SMALL, 0, verify, Checkpoints(tmp_path, every=2))


def curve(run: Run, restart_after: int | None = None) -> Curve:
    """Everything that training came to, to the last bit."""
    done = list(loop.train(run, restart_after=restart_after))
    digest = hashlib.sha256(b"".join(value.tobytes() for _, value in sorted(run.policy.parameters.items())))
    return [one.reward for one in done], [one.update.loss.total for one in done], digest.hexdigest()


def names(roots: list[SpanNode]) -> list[str]:
    """The root of one trace and its children, those of `rl.phase` by the name of the phase."""
    assert len(roots) == 1
    spans = [roots[0].span, *(child.span for child in roots[0].children)]
    return [str(span.attributes.get("rl.phase.name", span.name)) for span in spans]


@contextmanager
def sending() -> Iterator[None]:
    with (
        Receiver() as receiver,
        rlotel.instrument(endpoint=receiver.http_endpoint, export_interval=0.05) as session,
    ):
        yield
        assert session.flush()
        assert len(receiver.capture.spans("rl.loop")) == SMALL.iterations


@contextmanager
def sending_to_nobody() -> Iterator[None]:
    with Receiver() as closed:
        endpoint = closed.http_endpoint
    with rlotel.instrument(endpoint=endpoint, export_interval=0.05):
        yield


@pytest.mark.parametrize("switched_on", [sending, sending_to_nobody])
def test_the_learning_curve_is_the_same_to_the_bit_with_rlotel_on_off_and_without_a_collector(
    switched_on: Callable[[], AbstractContextManager[None]], tmp_path: Path
) -> None:
    plain = curve(start(SMALL, 7, verify, Checkpoints(tmp_path, every=2)))
    with switched_on():
        observed = curve(start(SMALL, 7, verify, Checkpoints(tmp_path, every=2)))
    assert observed == plain
    other = curve(start(SMALL, 8, verify, Checkpoints(tmp_path, every=2)))
    assert all(ours != others for ours, others in zip(plain, other, strict=True))


def test_a_run_that_goes_back_to_a_checkpoint_ends_with_the_weights_of_one_that_did_not(tmp_path: Path) -> None:
    straight = curve(start(SMALL, 0, verify, Checkpoints(tmp_path, every=1)))
    back = curve(start(SMALL, 0, verify, Checkpoints(tmp_path, every=2)), restart_after=3)
    twice = [0, 1, 2, 2, 3]
    assert back == ([straight[0][index] for index in twice], [straight[1][index] for index in twice], straight[2])


def test_every_iteration_is_one_trace_with_its_phases_in_order(telemetry: Telemetry, run: Run) -> None:
    list(loop.train(run))
    traces = list(telemetry.capture().traces().values())
    assert [names(roots) for roots in traces] == [
        ["rl.loop", *PHASES],
        ["rl.loop", *WITH_CHECKPOINT],
        ["rl.loop", *PHASES],
        ["rl.loop", *WITH_CHECKPOINT],
    ]
    assert [roots[0].span.attributes["rl.loop.iteration"] for roots in traces] == [1, 2, 3, 4]


def test_what_is_counted_is_what_was_done(telemetry: Telemetry, run: Run, tmp_path: Path) -> None:
    rollouts: list[Rollouts] = []

    def seen(some: Rollouts) -> Floats:
        if some.group_size == SMALL.group_size:
            rollouts.append(some)
        return verify(some)

    run.verify = seen
    done = list(loop.train(run))
    weights = sum(value.nbytes for value in run.policy.parameters.values())
    prompt = sum(one.prompt_tokens for one in rollouts)
    completion = sum(one.completion_tokens for one in rollouts)
    counted = {
        "rl.sample.samples": SMALL.samples * 4,
        "rl.sample.episodes": SMALL.samples * 4,
        "rl.train.steps": STEPS_AN_ITERATION * 4,
        "rl.train.tokens": SMALL.epochs * (prompt + completion),
        "rl.sync.size": weights * 4,
        "rl.checkpoint.step": 4,
        "rl.environment.reward.mean": done[-1].reward,
        "rl.kl.divergence": done[-1].update.loss.kl_divergence,
    }
    assert {name: telemetry.value(name) for name in counted} == pytest.approx(counted)
    for kind, tokens in (("prompt", prompt), ("completion", completion)):
        assert telemetry.value("rl.sample.tokens", **{"rl.token.type": kind}) == tokens
    saved = telemetry.value("rl.checkpoint.size", **{"rl.checkpoint.operation": "save"})
    assert saved == pytest.approx(2 * (tmp_path / "checkpoint.npz").stat().st_size, rel=0.01)


def test_a_verifier_that_fails_costs_one_iteration_and_is_an_error_of_its_reward_phase(
    telemetry: Telemetry, run: Run
) -> None:
    Mishaps(fail_at=2).befall(run)
    assert [one.number for one in loop.train(run)] == [1, 3, 4]
    kind = "rlotel.demo.sandbox.SandboxTimeout"
    failed = [span for span in telemetry.spans() if span.status_code == "error"]
    assert [(span.name, span.attributes["error.type"]) for span in failed] == [
        ("rl.reward", kind),
        ("rl.loop", kind),
    ]
    assert failed[1].attributes["rl.loop.iteration"] == 2
    for phase in ("reward", "loop"):
        assert telemetry.value("rl.phase.failures", **{"rl.phase.name": phase}) == 1
        assert [point.count for point in telemetry.points(f"rl.{phase}.duration", **{"error.type": kind})] == [1]


def test_a_reward_that_is_not_a_number_is_counted_and_the_policy_survives_it(
    telemetry: Telemetry, run: Run
) -> None:
    Mishaps(nan_at=4).befall(run)
    rewards = [one.reward for one in loop.train(run)]
    assert [math.isfinite(reward) for reward in rewards] == [True, True, True, False]
    lost = {"rl.value.kind": "nan", "rl.value.name": "rl.train.loss", "rl.loss.type": "policy"}
    assert telemetry.value("rl.train.nonfinite", **lost) == 1
    assert telemetry.value("rl.train.loss", **{"rl.loss.type": "policy"}) is None
    assert telemetry.value("rl.environment.reward.mean") is None
    assert all(np.isfinite(value).all() for value in run.policy.parameters.values())


def test_going_back_to_a_checkpoint_is_a_restart(telemetry: Telemetry, tmp_path: Path) -> None:
    run = start(replace(SMALL, iterations=5), 0, verify, Checkpoints(tmp_path, every=3))
    assert [one.number for one in loop.train(run, restart_after=5)] == [1, 2, 3, 4, 5, 4, 5]
    assert [point.value for point in telemetry.points("rl.restarts") if point.value] == [1]
    restored = {"rl.checkpoint.operation": "restore", "rl.checkpoint.tier": "local_disk"}
    assert [point.count for point in telemetry.points("rl.checkpoint.duration", **restored)] == [1]
    assert len(telemetry.spans("rl.loop")) == len({span.trace_id for span in telemetry.spans("rl.loop")}) == 7


def test_the_loop_uses_nothing_of_rlotel_but_its_public_calls() -> None:
    tree = ast.parse(Path(loop.__file__).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    parts = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name.startswith("rlotel")} == {"rlotel"}
    assert {part for part in parts if part and part.startswith("rlotel") and ".demo" not in part} == set()
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "rlotel"
    }
    assert used <= set(rlotel.__all__)
    assert {"loop", "sample", "reward", "train", "sync", "phase", "checkpoint"} <= used
