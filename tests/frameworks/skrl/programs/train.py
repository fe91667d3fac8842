"""Train toy models with a real agent of skrl, and note what it tracks.

Usage: python train.py [ITERATIONS], with settings in the environment:

KIND      ppo, dqn or sac; own: an agent of the user's own; step: PPO with a loop of the user's own
EVALUATE  whether to evaluate afterwards
SAVE      every how many steps of its environments to write a checkpoint
LOAD      a checkpoint to go on from
FAIL      what raises in the second rollout: step or update
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import rlotel

rlotel.instrument(gpu=False)

import gymnasium  # noqa: E402 - as the frameworks are found by themselves, instrumented first
import numpy as np  # noqa: E402
import torch  # noqa: E402
from skrl.agents.torch.dqn import DQN, DQN_CFG  # noqa: E402
from skrl.agents.torch.ppo import PPO, PPO_CFG  # noqa: E402
from skrl.agents.torch.sac import SAC, SAC_CFG  # noqa: E402
from skrl.envs.wrappers.torch import Wrapper  # noqa: E402
from skrl.memories.torch import RandomMemory  # noqa: E402
from skrl.models.torch import CategoricalMixin, DeterministicMixin, GaussianMixin, Model  # noqa: E402
from skrl.trainers.torch import SequentialTrainer, StepTrainer  # noqa: E402

FOLDER = Path(os.environ.get("RUN_FOLDER", "."))
KIND = os.environ.get("KIND", "ppo")
FAIL = os.environ.get("FAIL", "")
ON_POLICY = KIND not in ("dqn", "sac")
ENVS, STEPS, EPOCHS, BATCHES = 4, 32, 3, 2
SLOW = 0.005 if ON_POLICY else 0.0
"""Seconds of a step, so that a rollout takes what is worth an iteration."""
WRITE = 48
"""Steps after which skrl writes what it tracks: in the middle of rollouts as well."""


class Broken(Exception):
    """What the test lets go wrong."""


def note(file: str, **values: Any) -> None:
    with (FOLDER / file).open("a") as lines:
        lines.write(json.dumps(values) + "\n")


class Points:
    """Points on a line that are to be kept near its middle; an episode ends far from it, or after 20 steps."""

    num_envs = ENVS
    device = "cpu"
    observation_space = gymnasium.spaces.Box(-10, 10, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32) if KIND == "sac" else gymnasium.spaces.Discrete(3)


class Environments(Wrapper):  # type: ignore[misc]
    """The same, as skrl wants them."""

    def __init__(self) -> None:
        super().__init__(Points())
        self.steps = self.ended = 0

    def reset(self) -> Any:
        self.x, self.left = torch.randn(ENVS, 2), torch.full((ENVS, 1), 20)
        return self.x.clone(), {}

    def step(self, actions: Any) -> Any:
        time.sleep(SLOW)
        self.steps += 1
        if FAIL == "step" and self.steps == STEPS + 5:
            raise Broken("a secret")
        force = actions.view(-1).float() if KIND == "sac" else actions.view(-1).float() - 1
        self.x[:, 1] += 0.1 * force
        self.x[:, 0] += 0.1 * self.x[:, 1]
        self.left -= 1
        far, late = self.x[:, :1].abs() > 3, self.left == 0
        done = (far | late).view(-1)
        self.ended += int(done.sum())
        self.x[done] = torch.randn(int(done.sum()), 2)
        self.left[done] = 20
        return self.x.clone(), -self.x[:, :1].abs(), far, late, {}

    def state(self) -> None:
        return None

    def render(self, *_: Any, **__: Any) -> None:
        pass

    def close(self) -> None:
        pass


def layers(inputs: int, outputs: int) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(inputs, 16), torch.nn.Tanh(), torch.nn.Linear(16, outputs))


class Policy(CategoricalMixin, Model):  # type: ignore[misc]
    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        CategoricalMixin.__init__(self, unnormalized_log_prob=True)
        self.net = layers(2, 3)

    def compute(self, inputs: Any, role: str = "") -> Any:
        return self.net(inputs["observations"]), {}


class Actor(GaussianMixin, Model):  # type: ignore[misc]
    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self, clip_actions=True)
        self.net = layers(2, 1)
        self.log_std = torch.nn.Parameter(torch.zeros(1))

    def compute(self, inputs: Any, role: str = "") -> Any:
        return self.net(inputs["observations"]), {"log_std": self.log_std}


class Values(DeterministicMixin, Model):  # type: ignore[misc]
    """Of a state, of each of three actions, or of a state with its action."""

    def __init__(self, outputs: int = 1, *, action: bool = False, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.action = action
        self.net = layers(3 if action else 2, outputs)

    def compute(self, inputs: Any, role: str = "") -> Any:
        seen = inputs["observations"]
        return self.net(torch.cat([seen, inputs["taken_actions"]], dim=1) if self.action else seen), {}


class OwnPPO(PPO):  # type: ignore[misc]
    """An agent of the user's own."""

    def update(self, **when: Any) -> None:
        super().update(**when)


def made(env: Any) -> Any:
    """The agent."""
    spaces = {
        "observation_space": env.observation_space,
        "state_space": None,
        "action_space": env.action_space,
        "device": "cpu",
    }
    models: dict[str, Any]
    if KIND == "dqn":
        models = {name: Values(3, **spaces) for name in ("q_network", "target_q_network")}
        kind, cfg = DQN, DQN_CFG(batch_size=16, learning_starts=20, gradient_steps=2, update_interval=2)
        cfg.exploration_scheduler = lambda *_: 0.2
    elif KIND == "sac":
        names = ("critic_1", "critic_2", "target_critic_1", "target_critic_2")
        models = {"policy": Actor(**spaces), **{name: Values(action=True, **spaces) for name in names}}
        kind, cfg = SAC, SAC_CFG(batch_size=16, learning_starts=20, gradient_steps=2)
    else:
        if KIND == "own":
            PPO(models={}, cfg=PPO_CFG(), **spaces)  # its base is watched as well
        models = {"policy": Policy(**spaces), "value": Values(**spaces)}
        kind = OwnPPO if KIND == "own" else PPO
        cfg = PPO_CFG(rollouts=STEPS, learning_epochs=EPOCHS, mini_batches=BATCHES, entropy_loss_scale=0.01)
        cfg.learning_rate_scheduler = (torch.optim.lr_scheduler.ConstantLR,)
    cfg.experiment.directory = str(FOLDER)
    cfg.experiment.experiment_name = "experiment"
    cfg.experiment.write_interval = WRITE
    cfg.experiment.checkpoint_interval = int(os.environ.get("SAVE", "0"))
    memory = RandomMemory(memory_size=STEPS if ON_POLICY else 1000, num_envs=ENVS, device="cpu")
    return kind(models=models, memory=memory, cfg=cfg, **spaces)


def followed(agent: Any) -> dict[str, Any]:
    """What skrl tracks, from outside of what is watched."""
    known: dict[str, Any] = {"updates": 0, "update_ms": 0.0, "step_ms": 0.0, "update_seconds": []}
    update, track, write = agent.update, agent.track_data, agent.write_tracking_data

    def updates(**when: Any) -> None:
        began = time.perf_counter()
        update(**when)
        known["update_seconds"].append(time.perf_counter() - began)
        known["updates"] += 1
        known["latest"] = {key: float(values[-1]) for key, values in agent.tracking_data.items() if values}
        if ON_POLICY:
            note("logged.jsonl", **known["latest"])

    def tracks(tag: str, value: float) -> None:
        sums = {"Stats / Algorithm update time (ms)": "update_ms", "Stats / Env stepping time (ms)": "step_ms"}
        if tag in sums and agent.training:
            known[sums[tag]] += value
        track(tag, value)

    def writes(**when: Any) -> None:
        means = {key: float(np.mean(values)) for key, values in agent.tracking_data.items()}
        known["written" if agent.training else "scores"] = means
        write(**when)

    agent.update, agent.track_data, agent.write_tracking_data = updates, tracks, writes
    return known


def fail_in_the_second(agent: Any) -> None:
    """In the third optimizer step of the second iteration."""
    taken: list[int] = []

    def count(*_: Any) -> None:
        taken.append(1)
        if len(taken) == EPOCHS * BATCHES + 3:
            raise Broken("a secret")

    agent.optimizer.register_step_pre_hook(count)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    iterations = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ITERATIONS", "4"))
    steps = iterations * (STEPS if ON_POLICY else 1)
    env = Environments()
    agent = made(env)
    if load := os.environ.get("LOAD"):
        agent.load(load)
    known = followed(agent)
    if FAIL == "update":
        fail_in_the_second(agent)
    cfg = {"timesteps": steps, "headless": True, "disable_progressbar": True, "close_environment_at_exit": False}
    trainer = (StepTrainer if KIND == "step" else SequentialTrainer)(env=env, agents=agent, cfg=cfg)
    began = time.perf_counter()
    try:
        if KIND == "step":
            for step in range(steps):
                trainer.train(timestep=step, timesteps=steps)
        else:
            trainer.train()
    except Broken as broken:
        print(f"raised {type(broken).__name__}: {broken}")
    elapsed = time.perf_counter() - began
    known.update(steps=env.steps, ended=env.ended)
    if os.environ.get("EVALUATE"):
        trainer.eval()
    (FOLDER / "last.json").write_text(json.dumps(known))
    weights = b"".join(
        weight.detach().numpy().tobytes() for model in agent.models.values() for weight in model.parameters()
    )
    print(f"weights={hashlib.sha256(weights).hexdigest()}")
    print(f"seconds={elapsed}")


if __name__ == "__main__":
    main()
