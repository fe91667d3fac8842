"""The tables of the trainers that are known, as their own loggers spell the keys."""

import json
from pathlib import Path
from typing import Any

import pytest

from rlotel import SettingError
from rlotel.capture import Capture, flatten
from rlotel.config import resolve
from rlotel.importing import job, runs
from rlotel.importing.presets import PRESETS, preset
from rlotel.integrations import KNOWN
from rlotel.integrations.tables import Gauge
from rlotel.transports import Request

NO_TRAINERS = {"ray", "threads", "torchrun"}


def imported(path: Path, name: str) -> tuple[Capture, job.Outcome]:
    """What the one run at a path becomes."""
    requests: list[Request] = []
    (run,) = runs.find(path)
    outcome = job.run(run, preset(name), resolve({}, {}), {}, lambda request, _time: requests.append(request))
    told = [flatten(request) for request in requests]
    points = tuple(point for points, _ in told for point in points)
    return Capture(points, tuple(span for _, spans in told for span in spans)), outcome


def test_there_is_one_for_every_trainer_that_logs_by_keys() -> None:
    assert set(KNOWN) - NO_TRAINERS - set(PRESETS) <= {"skrl"}


@pytest.mark.parametrize("name", PRESETS)
def test_each_tells_at_least_the_reward_a_loss_and_the_evaluations(name: str) -> None:
    table = preset(name)
    told = {
        str(entry.metric) for entries in table.entries.values() for entry in entries if isinstance(entry, Gauge)
    }
    assert told >= {"rl.environment.reward.mean", "rl.train.loss"}
    assert table.system
    assert all(table.of_evaluation(key) is None for key in table.entries)


def test_a_trainer_without_one_is_said() -> None:
    with pytest.raises(SettingError, match=r"preset: there is none for 'trlx'; there are areal, nemo_rl, "):
        preset("trlx")


def test_rllibs_result_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "PPO_CartPole-v1_00000" / "result.json"
    path.parent.mkdir()
    lines: list[dict[str, Any]] = [
        {
            "env_runners": {"episode_return_mean": 20.0 + step, "num_episodes": 11, "num_env_steps_sampled": 256},
            "learners": {"default_policy": {"vf_loss": 9.0}, "__all_modules__": {"num_env_steps_trained": 804}},
            "evaluation": {"env_runners": {"episode_return_mean": 99.0}},
            "training_iteration": step,
            "date": "2026-11-30_10-17-55",
            "timestamp": 1_796_033_875 + step,
            "time_this_iter_s": 0.25,
        }
        for step in (1, 2, 3)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    seen, outcome = imported(tmp_path, "rllib")
    assert (outcome.run_id, outcome.iterations) == ("PPO_CartPole-v1_00000", 3)
    assert [point.value for point in seen.latest("rl.environment.reward.mean")] == [23.0]
    assert [point.value for point in seen.latest("rl.sample.steps")] == [768]
    assert [point.sum for point in seen.latest("rl.loop.duration")] == [0.75]
    assert [point.value for point in seen.latest("rl.evaluation.score")] == [99.0]


@pytest.mark.filterwarnings("default")
def test_a_real_run_of_stable_baselines3_is_read(tmp_path: Path) -> None:
    module = pytest.importorskip("stable_baselines3", reason="stable_baselines3 is not installed")
    pytest.importorskip("torch.utils.tensorboard", reason="tensorboard is not installed")
    model = module.PPO(
        "MlpPolicy",
        "CartPole-v1",
        n_steps=64,
        batch_size=32,
        n_epochs=1,
        tensorboard_log=str(tmp_path),
        device="cpu",
    )
    model.learn(64 * 4, log_interval=1)
    seen, outcome = imported(tmp_path, "stable_baselines3")
    assert [span.attributes["rl.loop.iteration"] for span in seen.spans("rl.loop")] == [128, 192, 256]
    logged = model.logger.name_to_value or {}
    assert [point.value for point in seen.latest("rl.learning_rate")] == [pytest.approx(3e-4)]
    assert {point.attributes["rl.loss.type"] for point in seen.latest("rl.train.loss")} >= {
        "policy",
        "value",
        "total",
    }
    assert seen.latest("rl.environment.reward.mean")
    assert not [key for key in outcome.unmapped if key.startswith("rollout/")], logged
