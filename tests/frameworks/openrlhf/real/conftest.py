"""Runs of OpenRLHF's own launcher, trainers, engines and agents on a CPU, in processes of their own."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from tests.frameworks import running
from tests.frameworks.running import Run

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
RELEASE = running.release("openrlhf")
PATH = [PROGRAMS, HERE / "stubs", *([RELEASE] if RELEASE and not importlib.util.find_spec("openrlhf") else [])]

PROMPTS, REPEATS = 4, 2
"""Of one iteration: prompts, and rollouts of each."""
ROWS = PROMPTS * REPEATS

COMMON = {
    "vllm.num_engines": 1,
    "actor.num_gpus_per_node": 1,
    "ref.num_gpus_per_node": 1,
    "critic.num_gpus_per_node": 1,
    "reward.num_gpus_per_node": 1,
    "rollout.batch_size": PROMPTS,
    "rollout.n_samples_per_prompt": REPEATS,
    "rollout.micro_batch_size": 4,
    "rollout.max_new_tokens": 8,
    "data.max_len": 32,
    "train.batch_size": 4,
    "ckpt.save_steps": 2,
}
ENVIRON = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_DEDUP_LOGS": "0", "RLOTEL_GPU": "0"}


def train(folder: Path, *, prompts: int, status: int = 0, settings: dict[str, object], **environ: str) -> Run:
    """Run OpenRLHF's launcher to its end. A setting that is True is a flag."""
    command = [str(PROGRAMS / "train.py")]
    for name, value in {**COMMON, **settings}.items():
        command += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return running.run(command, folder, path=PATH, status=status, PROMPTS=str(prompts), **ENVIRON, **environ)


@pytest.fixture(scope="session")
def sync(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """GRPO with a reward function: two episodes of two iterations, an evaluation after each second one."""
    folder = tmp_path_factory.mktemp("sync")
    return train(
        folder,
        prompts=2 * PROMPTS,
        settings={
            "algo.advantage.estimator": "group_norm",
            "reward.remote_url": PROGRAMS / "reward.py",
            "train.num_episodes": 2,
            "eval.dataset": folder / "prompts.jsonl",
            "eval.steps": 2,
            "eval.n_samples_per_prompt": 2,
        },
    )


@pytest.fixture(scope="session")
def asynchronous(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """PPO with an agent, beside its rollouts: each call for them makes enough for two iterations."""
    folder = tmp_path_factory.mktemp("async")
    return train(
        folder,
        prompts=4 * PROMPTS,
        settings={
            "train.async_enable": True,
            "rollout.vllm_generate_batch_size": 2 * PROMPTS,
            "algo.advantage.estimator": "gae",
            "algo.kl.init_coef": 0,
            "train.agent_func_path": PROGRAMS / "agent.py",
            "eval.dataset": folder / "prompts.jsonl",
            "eval.steps": 2,
            "eval.n_samples_per_prompt": 2,
        },
    )


@pytest.fixture(scope="session")
def broken(sync: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """From the last checkpoint of `sync` on, with a reward model, to an optimizer step that fails."""
    folder = tmp_path_factory.mktemp("broken")
    shutil.copytree(sync.folder / "checkpoints", folder / "checkpoints")
    return train(
        folder,
        prompts=4 * PROMPTS,
        status=1,
        settings={
            "algo.advantage.estimator": "group_norm",
            "algo.kl.use_loss": True,
            "reward.model_name_or_path": "reward-model",
            "train.num_episodes": 3,
            "ckpt.load_enable": True,
        },
        FAIL_AT="2",
    )
