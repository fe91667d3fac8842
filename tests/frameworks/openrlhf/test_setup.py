"""What OpenRLHF's arguments say, nested as they are now and flat as they were to 0.9."""

from types import SimpleNamespace
from typing import Any

import pytest

from rlotel.derived import Hardware
from rlotel.integrations.openrlhf.setup import Setup

from .conftest import ARGS, nested

FLAT = {
    "pretrain": "/models/Qwen3-8B/",
    "advantage_estimator": "gae",
    "prompt_data": "json@/data/gsm8k",
    "critic_pretrain": "critic",
    "actor_num_nodes": 1,
    "actor_num_gpus_per_node": 4,
    "critic_num_nodes": 1,
    "critic_num_gpus_per_node": 4,
    "ref_num_nodes": 1,
    "ref_num_gpus_per_node": 4,
    "reward_num_nodes": 1,
    "reward_num_gpus_per_node": 2,
    "init_kl_coef": 0.01,
    "vllm_num_engines": 2,
    "vllm_tensor_parallel_size": 2,
    "remote_rm_url": None,
    "rollout_batch_size": 128,
    "n_samples_per_prompt": 8,
    "colocate_actor_ref": True,
    "ckpt_path": "/ckpt",
    "save_steps": 10,
}


def test_nested_arguments_are_read() -> None:
    setup = Setup(nested(ARGS))
    assert setup.identity() | {"system_version": None} == {
        "system": "openrlhf",
        "system_version": None,
        "algorithm": "GRPO",
        "model": "Qwen/Qwen3-0.6B",
        "environment": "openai/gsm8k",
    }
    assert (setup.rows, setup.phases().checkpoint_tier) == (4, "object_storage")
    assert setup.hardware() == Hardware(gpus=4, gpus_of={"train": 2, "sample": 2})


def test_flat_arguments_are_read() -> None:
    setup = Setup(SimpleNamespace(**FLAT))
    found = setup.identity()
    assert (found["algorithm"], found["model"]) == ("PPO", "Qwen3-8B")
    assert (setup.rows, setup.critic_path, setup.trains_by_rollouts) == (1024, "critic", True)
    # The reference shares the policy's GPUs.
    assert setup.hardware() == Hardware(gpus=4 + 4 + 2 + 4, gpus_of={"train": 8, "sample": 4})


@pytest.mark.parametrize(
    ("changes", "gpus", "gpus_of"),
    [
        ({"colocate_all_models": True}, 4, {}),
        ({"colocate_all_models": True, "async_train": True}, 8, {"train": 4, "sample": 4}),
        ({"colocate_critic_reward": True}, 12, {"train": 8, "sample": 4}),
        ({"remote_rm_url": ["http://rm"], "critic_pretrain": None}, 8, {"train": 4, "sample": 4}),
        ({"vllm_num_engines": 0}, 10, {"train": 8, "sample": 4}),
        ({"actor_num_nodes": None}, None, {}),
    ],
)
def test_gpus_are_counted_as_models_are_placed(
    changes: dict[str, Any], gpus: int | None, gpus_of: dict[str, int]
) -> None:
    assert Setup(SimpleNamespace(**{**FLAT, **changes})).hardware() == Hardware(gpus=gpus, gpus_of=gpus_of)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("OpenRLHF/prompt-collection-v0.1", "OpenRLHF/prompt-collection-v0.1"),
        ("openai/gsm8k@socratic", "openai/gsm8k"),
        ("/data/gsm8k/train.jsonl", "gsm8k"),
        ("/data/gsm8k", "gsm8k"),
        ("one,other", None),
        (None, None),
    ],
)
def test_the_environment_is_the_data_set_of_the_prompts(data: str | None, name: str | None) -> None:
    assert Setup(nested({"data.prompt_dataset": data})).identity()["environment"] == name


def test_the_estimator_names_the_algorithm() -> None:
    names = {
        estimator: Setup(nested({"algo.advantage.estimator": estimator})).identity()["algorithm"]
        for estimator in ("gae", "group_norm", "rloo", "reinforce", "reinforce_baseline", "dr_grpo", "new_one")
    }
    assert names == {
        "gae": "PPO",
        "group_norm": "GRPO",
        "rloo": "RLOO",
        "reinforce": "REINFORCE++",
        "reinforce_baseline": "REINFORCE++-baseline",
        "dr_grpo": "Dr. GRPO",
        "new_one": "NEW_ONE",
    }
