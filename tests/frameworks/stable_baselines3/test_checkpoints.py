"""A replay buffer is saved beside its model: time of its own, but nothing to come back to by itself."""

from pathlib import Path

from tests.frameworks.stable_baselines3.conftest import train


def test_a_replay_buffer_is_an_operation_of_its_own(tmp_path: Path) -> None:
    run = train(tmp_path, "dqn", 50, SAVE=str(tmp_path / "saved"))
    assert run.total("rl.checkpoint.operations", **{"rl.checkpoint.operation": "save"}) == 2
    assert run.observations("rl.checkpoint.duration") == 2
    assert run.gauge("rl.checkpoint.step")[-1] == 1
