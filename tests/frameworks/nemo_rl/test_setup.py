"""What NeMo RL's configuration says: dicts to 0.6, pydantic models with dicts in them from 0.7 on."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlotel.derived import Hardware
from rlotel.flops import generation_flops, read_config, train_flops
from rlotel.integrations.nemo_rl.setup import Setup

from .conftest import Nemo, Rows, batch, rollout

CONFIG: dict[str, Any] = {
    "grpo": {"num_prompts_per_step": 32, "num_generations_per_prompt": 16, "use_dynamic_sampling": False},
    "policy": {
        "model_name": "Qwen/Qwen2.5-1.5B",
        "train_global_batch_size": 512,
        "generation": {"backend": "vllm"},
        "dtensor_cfg": {"lora_cfg": {"enabled": False}},
    },
    "cluster": {"num_nodes": 2, "gpus_per_node": 8},
    "checkpointing": {"enabled": True, "checkpoint_dir": "results/grpo"},
    "data": {"train": {"dataset_name": "OpenMathInstruct-2"}},
}


def as_model(config: dict[str, Any]) -> Any:
    """As from 0.7 on: objects outside, dicts in some of them."""
    return SimpleNamespace(**{**config, "grpo": SimpleNamespace(**config["grpo"])})


@pytest.mark.parametrize("shape", [dict, as_model])
def test_both_shapes_of_a_configuration_say_the_same(standins: None, shape: Callable[[Any], Any]) -> None:
    setup = Setup(shape(CONFIG), "GRPO", {"math": None, "code": None})
    assert setup.identity() == {
        "system": "nemo-rl",
        "system_version": None,  # its package is not loaded here
        "algorithm": "GRPO",
        "model": "Qwen/Qwen2.5-1.5B",
        "environment": "code,math",
    }
    assert (setup.hardware(), setup.rollouts, setup.update_rows) == (Hardware(gpus=16), 512, 512)
    assert (setup.engine, setup.adapted, setup.checkpoint_tier) == ("vllm", False, None)


def test_what_a_configuration_does_not_say_is_unknown() -> None:
    setup = Setup({}, "SFT")
    assert set(setup.identity().values()) == {"nemo-rl", "SFT", None}
    assert (setup.hardware(), setup.rollouts, setup.update_rows) == (Hardware(), None, None)
    assert (setup.model_path, setup.engine, setup.adapted, setup.saves) == (None, None, False, False)


@pytest.mark.parametrize(
    ("section", "algorithm"),
    [
        ({}, "GRPO"),
        ({"use_dynamic_sampling": True}, "DAPO"),
        ({"adv_estimator": {"name": "grpo"}}, "GRPO"),
        ({"adv_estimator": {"name": "gdpo"}}, "GDPO"),
        ({"adv_estimator": SimpleNamespace(name="reinforce_plus_plus")}, "REINFORCE_PLUS_PLUS"),
    ],
)
def test_algorithms_that_are_a_configuration_of_grpo_have_their_names(section: Any, algorithm: str) -> None:
    assert Setup({"grpo": section}, "GRPO").identity()["algorithm"] == algorithm


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("/models/Qwen3-8B/", "Qwen3-8B"),
        ("~/models/mine", "mine"),
        ("gs://bucket/models/mine", "mine"),
        ("", None),
    ],
)
def test_a_folder_names_a_model_by_its_last_part(path: str, name: str | None) -> None:
    assert Setup({"policy": {"model_name": path}}, "GRPO").identity()["model"] == name


@pytest.mark.parametrize("place", ["dtensor_cfg", "megatron_cfg"])
def test_adapters_are_told_from_models(place: str) -> None:
    adapters = {"dtensor_cfg": {"lora_cfg": {"enabled": True}}, "megatron_cfg": {"peft": {"enabled": True}}}
    assert Setup({"policy": {place: adapters[place]}}, "SFT").adapted


def test_rates_are_told_per_gpu(nemo: Nemo) -> None:
    rollouts = nemo.module("experience.rollouts")

    def body() -> None:
        timer = nemo.timer()
        with timer.time("total_step_time"), timer.time("generation"):
            rollouts.run_multi_turn_rollout(None, None, None, {}, 64)
            nemo.pass_(2)
        nemo.logger.log_metrics({}, 1, "timing/train")

    made = {"message_log": [rollout(10, 30)] * 4}
    nemo.play(run_multi_turn_rollout=lambda **_: (made, {}))
    nemo.train(body, master_config=CONFIG)
    rates = ("rl.tokens.rate", "rl.tokens.rate_per_gpu", "rl.samples.rate", "rl.samples.rate_per_gpu")
    assert [nemo.telemetry.value(rate) for rate in rates] == [80, 5, 2, 0.125]
    (sample,) = nemo.telemetry.spans("rl.sample")
    assert (sample.attributes["rl.sample.batch_size"], sample.attributes["rl.sample.samples"]) == (512, 4)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The folder of a model."""
    config = {
        "model_type": "qwen3",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 1000,
        "tie_word_embeddings": True,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


def test_model_flops_are_ours_where_the_model_is_known(nemo: Nemo, model: Path) -> None:
    """Its configuration is read from disk, beside training; GPUs and their peak come with NeMo RL's results."""
    rollouts = nemo.module("experience.rollouts")

    def body() -> None:
        _wait_for_models(nemo)
        timer = nemo.timer()
        with timer.time("total_step_time"):
            with timer.time("generation"):
                rollouts.run_multi_turn_rollout(None, None, None, {}, 64)
            with timer.time("policy_training"):
                nemo.policy.train(batch(40, 50), None)
                nemo.pass_(2)
        nemo.logger.log_metrics({"train_fp_utilization": 0.9}, 1, "performance")
        nemo.logger.log_metrics({}, 1, "timing/train")

    made = {"message_log": [rollout(10, 30), rollout(20, 30)]}
    nemo.play(
        run_multi_turn_rollout=lambda **_: (made, {}),
        train=lambda **_: {"loss": Rows([1]), "total_flops": 1e9, "num_ranks": 2, "theoretical_tflops": 0.002},
    )
    nemo.train(body, master_config={**CONFIG, "policy": {"model_name": str(model)}})

    architecture = read_config(model)
    flops = train_flops(architecture, [40, 50]).total
    assert nemo.telemetry.value("rl.train.flops", **{"rl.role": "actor"}) == flops
    assert nemo.telemetry.value("rl.train.mfu") == pytest.approx(flops / (2 * 0.002e12))
    assert nemo.telemetry.value("rl.phase.flops", **{"rl.phase.name": "sample"}) == (
        generation_flops(architecture, [10, 20], [30, 30]).total
    )


def test_nobody_counts_the_flops_of_adapters(nemo: Nemo, model: Path) -> None:
    def body() -> None:
        _wait_for_models(nemo)
        timer = nemo.timer()
        with timer.time("total_step_time"), timer.time("policy_training"):
            nemo.policy.train(batch(40, 50), None)

    nemo.play(train=lambda **_: {"loss": Rows([1]), "total_flops": 1e9})
    policy = {"model_name": str(model), "dtensor_cfg": {"lora_cfg": {"enabled": True}}}
    nemo.train(body, "sft:sft_train", master_config={"policy": policy})
    assert nemo.telemetry.value("rl.train.tokens", **{"rl.role": "actor"}) == 90
    assert nemo.telemetry.points("rl.train.flops", **{"rl.role": "actor"}) == []


def _wait_for_models(nemo: Nemo) -> None:
    """For the thread that reads the model's configuration."""
    for thread in threading.enumerate():
        if thread.name == "rlotel-models":
            thread.join(30)
