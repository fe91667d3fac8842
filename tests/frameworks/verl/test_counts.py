"""What is counted of a batch: its real rows, and what follows from their lengths."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlotel.flops import forward_flops, generation_flops, read_config, train_flops
from rlotel.semconv import metrics as m
from rlotel.testing import Telemetry, captured
from tests.frameworks.verl.programs.model import MODEL

pytestmark = pytest.mark.filterwarnings("ignore")

PROMPTS, RESPONSES = [3, 4, 4], [5, 2, 7]
LENGTHS = [8, 6, 11]
GPUS, PEAK = 8, 1e9


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    """A run on GPUs whose peak is known."""
    with captured(gpus=GPUS, peak_flops=PEAK) as seen:
        yield seen


def model(folder: Path, **more: Any) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**MODEL, **more}))
    return str(folder)


def config(policy: str, **model: Any) -> dict[str, Any]:
    return {
        "actor_rollout_ref": {
            "model": {"path": policy, **model},
            "rollout": {"n": 1},
            "actor": {"ppo_mini_batch_size": 2, "ppo_epochs": 2},
        },
        "critic": {"ppo_mini_batch_size": 4, "ppo_epochs": 1, "model": {"path": "/nowhere"}},
    }


def tracking(settings: dict[str, Any]) -> Any:
    """The run's, once its models are looked up, which goes on beside it."""
    from verl.utils.tracking import Tracking

    made = Tracking("project", "experiment", default_backend=[], config=settings)
    for thread in threading.enumerate():
        if thread.name == "rlotel-models":
            thread.join(10)
    return made


def step(telemetry: Telemetry, **seconds: float) -> None:
    from verl.utils.debug import marked_timer

    with marked_timer("step", {}):
        for name, spent in seconds.items():
            with marked_timer(name, {}):
                telemetry.clock.advance(spent)


def look_up_lengths() -> None:
    """As verl does to compute its own metrics."""
    from verl.trainer.ppo import metric_utils

    lengths = {"prompt_length": torch.tensor(PROMPTS).float(), "response_length": torch.tensor(RESPONSES).float()}
    metric_utils._compute_response_info(SimpleNamespace(batch=lengths))


def total(telemetry: Telemetry, metric: Any, **match: str) -> float:
    return sum(float(point.value or 0) for point in telemetry.points(metric, **match))


def test_mfu_is_the_model_flops_of_the_update_over_its_time_and_gpus(telemetry: Telemetry, tmp_path: Path) -> None:
    run = tracking(config(model(tmp_path)))
    step(telemetry, gen=4, old_log_prob=1, ref=1, update_actor=2)
    look_up_lengths()
    run.log(data={"timing_s/step": 8, "perf/mfu/actor": 0.31}, step=1)

    policy = read_config(tmp_path)
    trained = 2 * train_flops(policy, LENGTHS).total
    forward = forward_flops(policy, LENGTHS).total
    sampled = generation_flops(policy, PROMPTS, RESPONSES).total
    assert total(telemetry, m.TRAIN_FLOPS) == trained
    assert telemetry.value(m.TRAIN_MFU) == pytest.approx(trained / (2 * GPUS * PEAK))
    assert telemetry.value(m.SAMPLE_MFU) == pytest.approx(sampled / (4 * GPUS * PEAK))
    assert telemetry.value(m.LOOP_MFU) == pytest.approx((trained + 2 * forward + sampled) / (8 * GPUS * PEAK))


@pytest.mark.parametrize("unknown", ["model", "adapters", "critic"])
def test_without_the_flops_of_all_that_is_trained_mfu_is_verls(
    telemetry: Telemetry, tmp_path: Path, unknown: str
) -> None:
    path = "/nowhere" if unknown == "model" else model(tmp_path)
    run = tracking(config(path, lora_rank=8) if unknown == "adapters" else config(path))
    critic = {"update_critic": 1.0} if unknown == "critic" else {}
    step(telemetry, gen=4, update_actor=2, **critic)
    look_up_lengths()
    run.log(data={"timing_s/step": 8, "perf/mfu/actor": 0.31}, step=1)
    assert telemetry.value(m.TRAIN_MFU, **{"rl.role": "actor"}) == 0.31
    assert telemetry.points(m.TRAIN_FLOPS) == telemetry.points(m.LOOP_MFU) == []


def test_the_first_look_at_the_lengths_is_without_padding(telemetry: Telemetry) -> None:
    run = tracking(config("/nowhere"))
    step(telemetry, gen=1, update_actor=1)
    look_up_lengths()
    look_up_lengths()
    run.log(data={"timing_s/step": 2}, step=1)
    assert total(telemetry, m.SAMPLE_SAMPLES) == 3
    assert total(telemetry, m.SAMPLE_TOKENS) == sum(LENGTHS)
    assert total(telemetry, m.TRAIN_TOKENS) == 2 * sum(LENGTHS)
    assert total(telemetry, m.TRAIN_STEPS) == 2 * 2


def test_padding_takes_optimizer_steps_and_is_nothing_else(telemetry: Telemetry) -> None:
    """V1 makes up rows so that every GPU has as many."""
    from verl.trainer.ppo.v1 import PPOTrainerSync

    def tag(prompt: int, response: int, **more: bool) -> dict[str, Any]:
        return {"prompt_len": prompt, "response_len": response, **more}

    # Two prompts: one session of the first, which gave two rows, and one of the second.
    keys = ["a_0_0", "a_0_1", "b_1_0", "a_0_0_padding"]
    tags = [tag(3, 5), tag(4, 2), tag(4, 7), tag(64, 64, is_padding=True)]
    run = tracking(config("/nowhere"))
    step(telemetry, gen=1, update_actor=1)
    with pytest.raises(AttributeError):  # a batch of tags alone is enough for us, and not for verl
        object.__new__(PPOTrainerSync)._compute_metrics(SimpleNamespace(keys=keys, tags=tags), {}, {}, 1, 0)
    run.log(data={"timing_s/step": 2}, step=1)
    assert total(telemetry, m.SAMPLE_SAMPLES) == 3
    assert total(telemetry, m.SAMPLE_EPISODES) == 2
    assert total(telemetry, m.SAMPLE_TOKENS, **{"rl.token.type": "prompt"}) == sum(PROMPTS)
    assert total(telemetry, m.SAMPLE_TOKENS, **{"rl.token.type": "completion"}) == sum(RESPONSES)
    assert total(telemetry, m.TRAIN_TOKENS) == 2 * sum(LENGTHS)
    assert total(telemetry, m.TRAIN_STEPS) == 2 * 2


def test_scoring_with_a_reward_model_on_the_trainers_gpus_is_timed_there(telemetry: Telemetry) -> None:
    for enabled in (False, True):
        run = tracking({**config("/nowhere"), "reward": {"reward_model": {"enable": enabled}}})
        step(telemetry, reward=3)
        run.log(data={"timing_s/step": 3}, step=1)
    (scored,) = telemetry.points(m.REWARD_DURATION)
    assert (scored.count, scored.sum) == (1, 3)


def test_a_checkpoint_that_goes_on_in_the_background_is_not_yet_durable(telemetry: Telemetry) -> None:
    settings = config("/nowhere")
    settings["actor_rollout_ref"]["actor"]["checkpoint"] = {"async_save": True}
    tracking(settings)
    step(telemetry, save_checkpoint=3)
    step(telemetry)
    assert telemetry.value(m.CHECKPOINT_DURATION, **{"rl.checkpoint.blocking": False}) == 3
    assert telemetry.points(m.CHECKPOINT_STEP) == []
