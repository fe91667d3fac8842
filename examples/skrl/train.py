"""PPO, or DQN, with skrl on CartPole, saved meanwhile and evaluated afterwards.

pip install rlotel skrl torch
python examples/skrl/train.py           # PPO on a CPU, some 10 seconds
python examples/skrl/train.py dqn
"""

import sys
import tempfile

import gymnasium
import torch
from skrl.agents.torch.dqn import DQN, DQN_CFG
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer

import rlotel

rlotel.instrument()

ITERATIONS, ENVS, ROLLOUT = 12, 8, 256


def layers(outputs: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, outputs))


class Policy(CategoricalMixin, Model):  # type: ignore[misc]
    def __init__(self, **spaces: object) -> None:
        Model.__init__(self, **spaces)
        CategoricalMixin.__init__(self, unnormalized_log_prob=True)
        self.net = layers(2)

    def compute(self, inputs, role=""):  # type: ignore[no-untyped-def]  # noqa: ARG002 - of skrl
        return self.net(inputs["observations"]), {}


class Values(DeterministicMixin, Model):  # type: ignore[misc]
    def __init__(self, outputs: int, **spaces: object) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = layers(outputs)

    def compute(self, inputs, role=""):  # type: ignore[no-untyped-def]  # noqa: ARG002 - of skrl
        return self.net(inputs["observations"]), {}


def main(algorithm: str = "ppo") -> None:
    torch.set_num_threads(1)
    env = wrap_env(gymnasium.make_vec("CartPole-v1", num_envs=ENVS, vectorization_mode="sync"))
    spaces = {
        "observation_space": env.observation_space,
        "state_space": env.state_space,
        "action_space": env.action_space,
        "device": env.device,
    }
    if algorithm == "dqn":
        models = {name: Values(2, **spaces) for name in ("q_network", "target_q_network")}
        cfg = DQN_CFG(
            batch_size=256,
            update_interval=4,
            learning_starts=500,
            exploration_scheduler=lambda step, _: 500 / (500 + step),
        )
    else:
        models = {"policy": Policy(**spaces), "value": Values(1, **spaces)}
        cfg = PPO_CFG(rollouts=ROLLOUT, learning_epochs=8, mini_batches=8, entropy_loss_scale=0.01)
    cfg.experiment.directory = tempfile.mkdtemp()
    cfg.experiment.checkpoint_interval = 4 * ROLLOUT
    memory = RandomMemory(memory_size=5000 if algorithm == "dqn" else ROLLOUT, num_envs=ENVS, device=env.device)
    agent = (DQN if algorithm == "dqn" else PPO)(models=models, memory=memory, cfg=cfg, **spaces)
    settings = {"timesteps": ITERATIONS * ROLLOUT, "headless": True, "disable_progressbar": True}
    settings["close_environment_at_exit"] = False
    trainer = SequentialTrainer(env=env, agents=agent, cfg=settings)
    trainer.train()
    trainer.eval()
    print(f"checkpoints are in {agent.experiment_dir}")


if __name__ == "__main__":
    main(*sys.argv[1:])
