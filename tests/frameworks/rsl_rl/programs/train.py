"""Train a toy policy with the real runner of rsl_rl, of whichever release is on the path, and note what it logs.

Usage: python train.py [ITERATIONS], with settings in the environment:

LOG         the log directory; none is given if it is empty
LOAD        a checkpoint to go on from
AGAIN       further iterations, of a second call of learn
ANOTHER     iterations of another runner, in the same process
HARD_EXIT   whether the process ends as Isaac Sim ends it
OPERATIONS  whether to count what PyTorch is asked to do while training, into operations.json
FAIL        what raises in the second iteration: step or optimizer
KIND        ppo, curious (with RND), distillation, or learner: a runner and an algorithm of the user's own
ENVS        environments of each rank
"""

import contextlib
import hashlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.utils.tensorboard  # slow to load on a busy machine, and an identity is not waited for that long

import rlotel

rlotel.instrument(gpu=False)

from rsl_rl import algorithms, runners  # noqa: E402 - what is imported later is watched as well
from rsl_rl.env import VecEnv  # noqa: E402

MAJOR = int(version("rsl-rl-lib").partition(".")[0])
FOLDER = Path(os.environ["RUN_FOLDER"])
KIND = os.environ.get("KIND", "ppo")
FAIL = os.environ.get("FAIL", "")
TEACHER = "teacher_loaded" if MAJOR >= 4 else "loaded_teacher"
STEPS = 16
EPOCHS, BATCHES = 2, 4
MODELS = ("policy", "actor", "critic", "student", "teacher", "rnd_state")
SECONDS_OF_A_STEP = 0.002


class Broken(Exception):
    """What the test lets go wrong."""


def note(file: str, **values: Any) -> None:
    with (FOLDER / file).open("a") as lines:
        lines.write(json.dumps(values) + "\n")


class Points(VecEnv):  # type: ignore[misc]
    """Points on a line that are to be kept near its middle; an episode ends far from it, or after 20 steps."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs, self.num_actions, self.max_episode_length = num_envs, 1, 20
        self.num_obs, self.num_privileged_obs = 2, None
        self.device = "cpu"
        self.cfg: dict[str, Any] = {}
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.x = torch.randn(num_envs, 2)
        self.steps = 0

    @property
    def unwrapped(self) -> "Points":
        return self

    step_dt = 0.02

    def get_observations(self) -> Any:
        if MAJOR < 3:
            return self.x.clone(), {"observations": {}}
        from tensordict import TensorDict

        return TensorDict({"policy": self.x.clone()}, batch_size=[self.num_envs])

    def reset(self) -> Any:
        return self.get_observations()

    def step(self, actions: torch.Tensor) -> Any:
        began = time.perf_counter()
        time.sleep(SECONDS_OF_A_STEP)
        self.steps += 1
        if FAIL == "step" and self.steps == STEPS + 4:
            raise Broken("a secret")
        self.x[:, 1] += 0.1 * actions[:, 0].clamp(-1, 1)
        self.x[:, 0] += 0.1 * self.x[:, 1]
        self.episode_length_buf += 1
        rewards = -self.x[:, 0].abs()
        late = self.episode_length_buf >= self.max_episode_length
        done = late | (self.x[:, 0].abs() > 5)
        self.x[done] = torch.randn(int(done.sum()), 2)
        self.episode_length_buf[done] = 0
        extras: dict[str, Any] = {"time_outs": late.clone(), "log": {"/far": self.x[:, 0].abs().mean()}}
        note("worked.jsonl", what="step", seconds=time.perf_counter() - began, ended=int(done.sum()))
        observations = self.get_observations()
        if MAJOR < 3:
            observations, more = observations
            extras.update(more)
        return observations, rewards, done.long(), extras


class OwnPPO(algorithms.PPO):  # type: ignore[misc]
    """An algorithm of the user's own."""


class OwnRunner(runners.OnPolicyRunner):  # type: ignore[misc]
    """A runner of the user's own, which does more than its base as it saves."""

    def learn(self, *args: Any, **kwargs: Any) -> None:
        super().learn(*args, **kwargs)

    def save(self, *args: Any, **kwargs: Any) -> None:
        super().save(*args, **kwargs)
        time.sleep(0.05)


def settings() -> dict[str, Any]:
    """The configuration, as this release wants it."""
    algorithm: dict[str, Any] = {
        "class_name": "PPO",
        "num_learning_epochs": EPOCHS,
        "num_mini_batches": BATCHES,
        "learning_rate": 1e-3,
        "schedule": "adaptive",
        "desired_kl": 0.01,
        "entropy_coef": 0.01,
    }
    if KIND == "distillation":
        # 32 steps of a rollout twice, of which each tenth is one of the optimizer: 3, and two are left over.
        algorithm = {"class_name": "Distillation", "num_learning_epochs": EPOCHS, "gradient_length": 10}
        algorithm["learning_rate"] = 1e-3
    if KIND == "curious":
        algorithm["rnd_cfg"] = {"weight": 5.0, "num_outputs": 4, "predictor_hidden_dims": [8]}
        algorithm["rnd_cfg"]["target_hidden_dims"] = [8]
    if KIND == "learner":
        algorithm["class_name"] = f"{__name__}:OwnPPO"
    common = {
        "num_steps_per_env": STEPS,
        "save_interval": 2,
        "logger": "tensorboard",
        "algorithm": algorithm,
        "obs_groups": {name: ["policy"] for name in MODELS},
    }
    layers = {"actor_hidden_dims": [16], "critic_hidden_dims": [16], "activation": "elu"}
    if MAJOR < 4 and KIND == "distillation":
        layers = {"student_hidden_dims": [16], "teacher_hidden_dims": [16], "activation": "elu"}
        policy = {"class_name": "StudentTeacher", "init_noise_std": 0.1, **layers}
        return {**common, "policy": policy, "empirical_normalization": False}
    if MAJOR < 4:
        policy = {"class_name": "ActorCritic", "init_noise_std": 1.0, **layers}
        return {**common, "policy": policy, "empirical_normalization": False}
    model = {"class_name": "MLPModel", "hidden_dims": [16], "activation": "elu"}
    if MAJOR == 4:
        acting = {**model, "stochastic": True, "init_noise_std": 1.0}
    else:
        acting = {**model, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0}}
    if KIND == "distillation":
        return {**common, "student": acting, "teacher": {**acting}}
    algorithm.setdefault("rnd_cfg", None)
    return {**common, "actor": acting, "critic": {**model}}


def note_what_is_logged() -> None:
    """Write down every value that goes to TensorBoard, an object an iteration."""
    from torch.utils.tensorboard import SummaryWriter

    real = SummaryWriter.add_scalar

    def add_scalar(self: Any, tag: str, value: Any, step: Any = None, *args: Any, **kwargs: Any) -> None:
        if not tag.endswith("/time"):
            note("logged.jsonl", tag=tag, value=float(value), step=step)
        real(self, tag, value, step, *args, **kwargs)

    SummaryWriter.add_scalar = add_scalar


def let_optimizer_fail(optimizer: torch.optim.Optimizer) -> None:
    """In the third step of the second iteration."""
    taken = []

    def count(*_: Any) -> None:
        taken.append(1)
        if len(taken) == EPOCHS * BATCHES + 3:
            raise Broken("a secret")

    optimizer.register_step_pre_hook(count)


@contextlib.contextmanager
def counted_operations() -> Iterator[None]:
    """Count PyTorch's operations by name, ours included."""
    from torch.utils._python_dispatch import TorchDispatchMode

    counts: Counter[str] = Counter()

    class Counting(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            counts[str(function)] += 1
            return function(*args, **(kwargs or {}))

    with Counting():
        yield
    (FOLDER / "operations.json").write_text(json.dumps(counts))


def gather(runner_class: Any) -> Any:
    """Ranks that meet over gloo: rsl_rl insists on GPUs."""

    class Ranks(runner_class):  # type: ignore[misc]
        def _configure_multi_gpu(self) -> None:
            world, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
            self.gpu_world_size, self.gpu_global_rank, self.gpu_local_rank = world, rank, rank
            self.is_distributed = world > 1
            told = {"global_rank": rank, "local_rank": rank, "world_size": world} if world > 1 else None
            self.cfg["multi_gpu"] = self.multi_gpu_cfg = told
            if world > 1:
                torch.distributed.init_process_group("gloo", rank=rank, world_size=world)

    Ranks.__module__, Ranks.__name__ = runner_class.__module__, runner_class.__name__
    return Ranks


def made(log: str | None) -> Any:
    """A runner, as the settings want it."""
    kinds = {"distillation": getattr(runners, "DistillationRunner", runners.OnPolicyRunner), "learner": OwnRunner}
    kind = gather(kinds.get(KIND, runners.OnPolicyRunner))
    runner = kind(Points(int(os.environ.get("ENVS", "32"))), settings(), log_dir=log, device="cpu")
    if KIND == "distillation":  # whose teacher knows no more than its student
        (runner.alg if MAJOR >= 4 else runner.alg.policy).__dict__[TEACHER] = True
    if load := os.environ.get("LOAD"):
        runner.load(load)
    if FAIL == "optimizer":
        let_optimizer_fail(runner.alg.optimizer)
    return runner


def digest(optimizer: torch.optim.Optimizer) -> str:
    """Of all that was learnt, to the bit."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    return hashlib.sha256(b"".join(weight.detach().numpy().tobytes() for weight in weights)).hexdigest()


def learn(iterations: int, log: str | None) -> None:
    runner = made(log)
    began = time.perf_counter()
    try:
        with counted_operations() if os.environ.get("OPERATIONS") else contextlib.nullcontext():
            runner.learn(iterations, init_at_random_ep_len=True)
        if again := int(os.environ.get("AGAIN", "0")):
            runner.learn(again)
        if another := int(os.environ.get("ANOTHER", "0")):
            runner = made(log)  # the first is gone
            runner.learn(another)
    except Broken as broken:
        print(f"raised {type(broken).__name__}: {broken}")
    elapsed = time.perf_counter() - began
    print(f"weights={digest(runner.alg.optimizer)}")
    print(f"seconds={elapsed}", flush=True)


def main() -> None:
    if os.environ.get("HARD_EXIT"):
        sys.modules["isaacsim"] = ModuleType("isaacsim")
    torch.manual_seed(int(os.environ.get("RANK", "0")))
    torch.set_num_threads(1)
    log = os.environ.get("LOG") or None
    if log:
        note_what_is_logged()
    learn(int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ITERATIONS", "4")), log)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    if os.environ.get("HARD_EXIT"):
        os._exit(0)


if __name__ == "__main__":
    main()
