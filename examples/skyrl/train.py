"""GRPO with SkyRL on sums of two numbers, with a second try. Needs a GPU; SkyRL's `fsdp` extra says what else.

pip install 'rlotel[ray]' 'skyrl[fsdp]'
rlotel run -- python examples/skyrl/train.py
"""

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import ray
import skyrl_gym
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.entrypoints.main_base import BasePPOExp, validate_cfg
from skyrl.train.utils.utils import initialize_ray
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

FOLDER = Path("/tmp/sums")  # noqa: S108 - an example's
ROWS = 4096
SETTINGS = (
    f"data.train_data=['{FOLDER}/train.jsonl']",
    f"data.val_data=['{FOLDER}/test.jsonl']",
    f"trainer.ckpt_path={FOLDER}/checkpoints",
    f"trainer.export_path={FOLDER}/exports",
    "trainer.policy.model.path=Qwen/Qwen2.5-0.5B-Instruct",
    "trainer.algorithm.advantage_estimator=grpo",
    "trainer.algorithm.use_kl_loss=false",
    "trainer.train_batch_size=64",
    "trainer.policy_mini_batch_size=32",
    "trainer.eval_interval=10",
    "trainer.ckpt_interval=10",
    "trainer.logger=console",
    "generator.n_samples_per_prompt=8",
    "generator.max_turns=2",
    "generator.sampling_params.max_generate_length=128",
    "generator.inference_engine.gpu_memory_utilization=0.5",
    "environment.env_class=sums",
)


class Sums(BaseTextEnv):  # type: ignore[misc]
    """A question that may be answered once more: the first wrong answer is a turn, the second is the end."""

    def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:  # noqa: ARG002
        super().__init__()
        given = extras or {}
        self.answer, self.max_turns = int(given["answer"]), int(given["max_turns"])

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Look at the last number of an answer."""
        self.turns += 1
        numbers = re.findall(r"\d+", action)
        right = bool(numbers) and int(numbers[-1]) == self.answer
        done = right or self.turns >= self.max_turns
        said = [] if done else [{"role": "user", "content": "That is wrong. Try again."}]
        return BaseTextEnvStepOutput(observations=said, reward=float(right), done=done, metadata={})


def write_questions(file: Path, rows: int, seed: int) -> None:
    """Write prompts as SkyRL reads them; what is beside the prompt goes to the environment."""
    numbers = random.Random(seed)  # noqa: S311 - no secrets
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lines:
        for _ in range(rows):
            one, other = numbers.randint(10, 99), numbers.randint(10, 99)
            prompt = [{"role": "user", "content": f"What is {one} + {other}? End with the number."}]
            row = {"prompt": prompt, "env_class": "sums", "answer": one + other, "data_source": "sums"}
            lines.write(json.dumps(row) + "\n")


@ray.remote(num_cpus=1)  # type: ignore[untyped-decorator]
def entrypoint(cfg: Any) -> None:
    """Train. The loop is in this task of Ray's, not in the process that is started."""
    skyrl_gym.register(id="sums", entry_point=Sums)
    BasePPOExp(cfg).run()


if __name__ == "__main__":
    write_questions(FOLDER / "train.jsonl", ROWS, seed=1)
    write_questions(FOLDER / "test.jsonl", 256, seed=2)
    cfg = SkyRLTrainConfig.from_cli_overrides([*SETTINGS, *sys.argv[1:]])
    validate_cfg(cfg)
    initialize_ray(cfg)
    ray.get(entrypoint.remote(cfg))
