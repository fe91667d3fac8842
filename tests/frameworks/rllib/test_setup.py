"""What a configuration says of the run: its GPUs and its environment."""

import gymnasium
import pytest
from ray.rllib.algorithms.ppo import PPOConfig

from rlotel.derived import Hardware
from rlotel.integrations.rllib import setup
from rlotel.semconv.attributes import Role

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    ("learners", "each", "runners", "part", "expected"),
    [
        (0, 0, 4, 0, Hardware()),
        (0, 1, 4, 0, Hardware(gpus=1, gpus_of={"train": 1})),
        (4, 1, 8, 0, Hardware(gpus=4, gpus_of={"train": 4})),
        (2, 1, 8, 0.25, Hardware(gpus=4, gpus_of={"train": 2, "sample": 2})),
        (2, 1, 3, 0.25, Hardware()),  # of which GPU is a part used?
    ],
)
def test_gpus_are_those_of_learners_and_env_runners(
    learners: int, each: int, runners: int, part: float, expected: Hardware
) -> None:
    config = PPOConfig()
    config.learners(num_learners=learners, num_gpus_per_learner=each)
    config.env_runners(num_env_runners=runners, num_gpus_per_env_runner=part)
    assert setup.hardware(config) == expected
    assert setup.gpu_role(config, learns=True) == (Role.TRAINER if each else None)
    assert setup.gpu_role(config, learns=False) == (Role.ROLLOUT if part else None)


def test_an_environment_is_known_by_its_name_or_its_classs() -> None:
    class Maze(gymnasium.Env):  # type: ignore[misc]
        pass

    assert setup.environment(PPOConfig().environment("CartPole-v1")) == "CartPole-v1"
    assert setup.environment(PPOConfig().environment(Maze)) == "Maze"
    assert setup.environment(PPOConfig()) is None
