"""Algorithms without actors, by a clock that only their environment and their optimizer move."""

from pathlib import Path
from typing import Any

import pytest
import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.examples.envs.classes.multi_agent import MultiAgentCartPole

from rlotel.testing import Telemetry
from tests.frameworks.rllib.environments import STEP, configuration
from tests.frameworks.running import phase

pytestmark = pytest.mark.filterwarnings("ignore")

UPDATE = 0.5
"""Seconds of a step of an optimizer."""


@pytest.fixture
def optimizer(telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Optimizers whose steps take their time and are counted."""
    taken = [0]
    step = torch.optim.Adam.step

    def slow(self: Any, *args: Any, **kwargs: Any) -> Any:
        taken[0] += 1
        telemetry.clock.advance(UPDATE)
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", slow)
    return taken


def phases(telemetry: Telemetry) -> list[tuple[str, float]]:
    """The spans that have ended, and their seconds."""
    return [(phase(span), (span.end_ns - span.start_ns) / 1e9) for span in telemetry.spans()]


def failures(telemetry: Telemetry) -> list[tuple[str, object]]:
    """The spans that failed, and with what."""
    return [(s.name, s.attributes["error.type"]) for s in telemetry.spans() if s.status_code == "error"]


def test_each_phase_takes_as_long_as_what_it_does(telemetry: Telemetry, optimizer: list[int]) -> None:
    algorithm = configuration("PPO").build_algo()
    result = algorithm.train()
    sampled = result["env_runners"]["num_env_steps_sampled"]
    sampling, training = sampled * STEP, optimizer[0] * UPDATE
    assert phases(telemetry) == [
        ("sync", 0),  # as it was made
        ("sample", sampling),
        ("train", training),
        ("sync", 0),
        ("connectors", 0),
        ("loop", sampling + training),
    ]
    assert telemetry.value("rl.sample.duration", **{"rl.sample.kind": "generate"}) == sampling
    assert telemetry.value("rl.train.duration") == training
    assert telemetry.value("rl.loop.duration") == sampling + training
    assert telemetry.value("rl.loop.idle.ratio") == 0


def test_counts_and_values_are_those_of_the_result(telemetry: Telemetry, optimizer: list[int]) -> None:
    algorithm = configuration("PPO").build_algo()
    results = [algorithm.train() for _ in range(3)]
    runners = [result["env_runners"] for result in results]
    counted = {
        "rl.sample.steps": sum(found["num_env_steps_sampled"] for found in runners),
        "rl.sample.samples": sum(found["num_module_steps_sampled"]["default_policy"] for found in runners),
        "rl.sample.episodes": sum(found["num_episodes"] for found in runners),
        "rl.train.steps": optimizer[0],
    }
    assert counted["rl.sample.steps"] == runners[-1]["num_env_steps_sampled_lifetime"]
    assert {name: telemetry.value(name) for name in counted} == counted
    learner = results[-1]["learners"]["default_policy"]
    assert telemetry.value("rl.environment.reward.mean") == telemetry.value("rl.environment.episode.length.mean")
    assert telemetry.value("rl.environment.reward.mean") == 10
    assert telemetry.value("rl.entropy") == learner["entropy"]
    assert telemetry.value("rl.learning_rate") == learner["default_optimizer_learning_rate"]
    assert telemetry.value("rl.kl.divergence", **{"rl.kl.reference": "old_policy"}) == learner["mean_kl_loss"]
    for kind, name in {"policy": "policy_loss", "value": "vf_loss", "total": "total_loss"}.items():
        assert telemetry.value("rl.train.loss", **{"rl.loss.type": kind}) == learner[name]
    assert telemetry.value("rl.sample.staleness") == 0  # on policy
    assert telemetry.points("rl.train.nonfinite")[0].value == 0


def test_an_iteration_without_a_finished_episode_has_no_reward(telemetry: Telemetry) -> None:
    algorithm = configuration("PPO", length=1000).build_algo()
    algorithm.train()
    assert telemetry.value("rl.sample.steps") == 40
    assert telemetry.value("rl.environment.reward.mean") is None
    assert sum(point.value or 0 for point in telemetry.points("rl.train.nonfinite")) == 0


def test_many_training_steps_are_one_span_a_phase(telemetry: Telemetry, optimizer: list[int]) -> None:
    algorithm = configuration("DQN").build_algo()
    results = [algorithm.train() for _ in range(2)]
    assert [result["num_training_step_calls_per_iteration"] for result in results] == [30, 30]
    _, first, second = telemetry.capture().traces().values()
    assert [phase(node.span) for node in second[0].children] == ["sample", "data", "train", "sync", "connectors"]
    for roots in (first, second):
        (sample,) = (node.span for node in roots[0].children if phase(node.span) == "sample")
        assert (sample.end_ns - sample.start_ns) / 1e9 == 30 * STEP
    (point,) = telemetry.points("rl.train.duration")
    assert (point.count, point.sum) == (2, optimizer[0] * UPDATE)
    assert telemetry.value("rl.train.steps") == optimizer[0]
    assert telemetry.value("rl.sample.steps") == 60
    assert telemetry.value("rl.train.loss", **{"rl.loss.type": "value"}) is not None


def test_several_optimizers_of_a_module_have_roles(telemetry: Telemetry) -> None:
    algorithm = configuration("SAC", continuous=True).build_algo()
    algorithm.train()
    rates = {point.attributes.get("rl.role") for point in telemetry.points("rl.learning_rate")}
    assert rates == {"actor", "critic"}
    assert {point.attributes["rl.loss.type"] for point in telemetry.points("rl.train.loss")} >= {"policy", "value"}


def test_several_modules_are_told_apart_and_their_rows_are_counted(telemetry: Telemetry) -> None:
    config = configuration("PPO").environment(MultiAgentCartPole, env_config={"num_agents": 2})
    config.multi_agent(policies={"left", "right"}, policy_mapping_fn=lambda agent, *_: ("left", "right")[agent])
    result = config.build_algo().train()
    rows = result["env_runners"]["num_module_steps_sampled"]
    assert telemetry.value("rl.sample.samples") == sum(rows.values()) > telemetry.value("rl.sample.steps")
    totals = telemetry.points("rl.train.loss", **{"rl.loss.type": "total"})
    assert {point.attributes["rl.role"]: point.value for point in totals} == {
        name: result["learners"][name]["total_loss"] for name in ("left", "right")
    }
    assert telemetry.value("rl.entropy") is None  # of which of them?


def test_an_evaluation_is_a_phase_and_its_values_are_scores(telemetry: Telemetry) -> None:
    config = configuration("PPO", length=20)
    config.evaluation(
        evaluation_interval=2,
        evaluation_duration=1,
        evaluation_num_env_runners=0,
        evaluation_config=type(config).overrides(env_config={"length": 5}),
    )
    algorithm = config.build_algo()
    results = [algorithm.train() for _ in range(3)]
    evaluations = telemetry.spans("rl.phase", **{"rl.phase.name": "evaluate"})
    assert [span.attributes["rl.loop.iteration"] for span in evaluations] == [2]
    assert telemetry.value("rl.environment.reward.mean") == 20
    assert telemetry.value("rl.evaluation.score", **{"rl.evaluation.name": "episode_return_mean"}) == 5
    steps = [result["env_runners"]["num_env_steps_sampled"] for result in results]
    assert telemetry.value("rl.sample.steps") == sum(steps)
    assert len(telemetry.spans("rl.sample")) == 3


def test_an_evaluation_of_its_own_is_one_too(telemetry: Telemetry) -> None:
    config = configuration("PPO", length=5).evaluation(evaluation_interval=1, evaluation_duration=2)
    config.build_algo().evaluate()
    assert [name for name, _ in phases(telemetry)] == ["sync", "evaluate"]
    assert telemetry.value("rl.evaluation.score", **{"rl.evaluation.name": "episode_len_max"}) == 5
    assert telemetry.value("rl.sample.steps") == 0


def test_a_checkpoint_is_saved_and_training_goes_on_from_it(telemetry: Telemetry, tmp_path: Path) -> None:
    algorithm = configuration("PPO").build_algo()
    algorithm.train()
    algorithm.train()
    algorithm.save_to_path(str(tmp_path))
    assert telemetry.value("rl.checkpoint.step") == 2
    again = Algorithm.from_checkpoint(str(tmp_path))
    again.train()
    assert [span.attributes["rl.loop.iteration"] for span in telemetry.spans("rl.loop")] == [1, 2, 3]
    operations = telemetry.points("rl.checkpoint.duration")
    assert {p.attributes["rl.checkpoint.operation"]: p.count for p in operations} == {"save": 1, "restore": 1}
    assert sum(point.value or 0 for point in telemetry.points("rl.restarts")) == 0


def test_an_environment_that_fails_is_an_error_and_passes_through(telemetry: Telemetry) -> None:
    algorithm = configuration("PPO", breaks_after=45).build_algo()
    algorithm.train()
    with pytest.raises(RuntimeError) as raised:
        algorithm.train()
    assert isinstance(raised.value.__cause__, ValueError)
    failed = [
        (span.name, span.attributes["error.type"]) for span in telemetry.spans() if span.status_code == "error"
    ]
    assert failed == [("rl.sample", "RuntimeError"), ("rl.loop", "RuntimeError")]
    assert telemetry.points("rl.sample.duration", **{"error.type": "RuntimeError"})[0].count == 1


def test_an_optimizer_that_fails_is_an_error_and_passes_through(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithm = configuration("PPO").build_algo()

    def fail(*_args: Any, **_kwargs: Any) -> None:
        raise ArithmeticError("no step")

    monkeypatch.setattr(torch.optim.Adam, "step", fail)
    with pytest.raises(ArithmeticError, match="no step"):  # a copy, which Tune makes
        algorithm.train()
    failed = [
        (span.name, span.attributes["error.type"]) for span in telemetry.spans() if span.status_code == "error"
    ]
    assert failed == [("rl.train", "ArithmeticError"), ("rl.loop", "ArithmeticError")]
    assert telemetry.value("rl.train.steps") == 0
