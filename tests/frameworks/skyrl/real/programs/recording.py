"""Writes down what a real trainer did, as a trace that is replayed on stand-ins: `../../traces/*.json`.

Usage: RLOTEL_ENABLED=0 python recording.py FILE sync|async [PATH=VALUE...]; ITERATIONS says how many.

One event a line: when it was (seconds), what kind it is, of what, in which task, and what is known of it.
"""

import asyncio
import contextvars
import functools
import inspect
import itertools
import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import made_up  # type: ignore[import-not-found]
import skyrl_gym
from skyrl.train.fully_async_trainer import FullyAsyncRayPPOTrainer
from skyrl.train.generators.skyrl_gym_generator import SkyRLGymGenerator
from skyrl.train.trainer import RayPPOTrainer
from skyrl.train.utils.utils import Timer

SETTINGS = (
    "trainer.algorithm.advantage_estimator",
    "trainer.algorithm.use_kl_in_reward",
    "trainer.algorithm.use_kl_loss",
    "trainer.ckpt_path",
    "trainer.critic.model.path",
    "trainer.fully_async.enabled",
    "trainer.placement.colocate_all",
    "trainer.placement.critic_num_gpus_per_node",
    "trainer.placement.critic_num_nodes",
    "trainer.placement.policy_num_gpus_per_node",
    "trainer.placement.policy_num_nodes",
    "trainer.policy_mini_batch_size",
    "trainer.policy.model.path",
    "trainer.train_batch_size",
    "trainer.update_epochs_per_batch",
    "generator.inference_engine.backend",
    "generator.inference_engine.num_engines",
    "generator.n_samples_per_prompt",
    "generator.step_wise_trajectories",
    "environment.env_class",
)
"""What a replay's configuration has."""

BEGAN = time.perf_counter()
events: list[str] = []
_lock = threading.Lock()
_where = contextvars.ContextVar("where", default="main")
_tasks = itertools.count(1)


def note(kind: str, name: str, **data: Any) -> None:
    with _lock:
        at = round(time.perf_counter() - BEGAN, 6)
        events.append(json.dumps([at, kind, name, _where.get(), data]))


def lengths(batch: Any) -> dict[str, Any]:
    return {
        "lengths": batch["attention_mask"].sum(dim=-1).tolist(),
        "pad_size": batch.metadata.get("pad_size", 0),
    }


def made(output: Any) -> dict[str, Any]:
    found = {
        "prompts": [len(ids) for ids in output["prompt_token_ids"]],
        "responses": [len(ids) for ids in output["response_ids"]],
        "stop_reasons": output["stop_reasons"],
    }
    if output.get("is_last_step") is not None:
        found["is_last_step"] = output["is_last_step"]
    return found


Told = Callable[[Any], dict[str, Any]]
ASKED: dict[str, Told] = {
    "generate": lambda asked: {"phase": asked["batch_metadata"].training_phase},
    "fwd_logprobs_values_reward": lengths,
    "_execute_forward_pass": lambda model: {"model": model},
    "forward": lambda model: {"model": model},
    "optim_step": lambda model: {"model": model},
}
"""What is noted of the first argument of a call."""
ANSWERED: dict[str, Told] = {
    "generate": made,
    "step": lambda output: {"done": output["done"]},
    "eval": lambda scores: {"scores": scores},
    "load_checkpoints": lambda found: {"step": found[0]},
}
"""What is noted of what a call returned."""


def asked(name: str, args: Any) -> dict[str, Any]:
    return ASKED[name](args[0]) if name in ASKED else {}


def answered(name: str, result: Any) -> dict[str, Any]:
    return ANSWERED[name](result) if name in ANSWERED else {}


def record(owner: Any, name: str) -> None:
    """Note each call of a function."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        note("call", name, **asked(name, args))
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            note("raise", name, error=type(error).__name__)
            raise
        note("return", name, **answered(name, result))
        return result

    @functools.wraps(original)
    async def coroutine(self: Any, *args: Any, **kwargs: Any) -> Any:
        token = None
        if name == "generate" and asyncio.current_task() is not training:
            token = _where.set(f"task {next(_tasks)}")
        note("call", name, **asked(name, args))
        try:
            result = await original(self, *args, **kwargs)
        except BaseException as error:
            note("raise", name, error=type(error).__name__)
            raise
        else:
            note("return", name, **answered(name, result))
        finally:
            if token is not None:
                _where.reset(token)
        return result

    setattr(owner, name, coroutine if inspect.iscoroutinefunction(inspect.unwrap(original)) else call)


def record_timers() -> None:
    enter, leave = Timer.__enter__, Timer.__exit__
    numbers = itertools.count()

    def started(self: Any) -> Any:
        self.number = next(numbers)
        note("start", self.message, timer=self.number)
        return enter(self)

    def stopped(self: Any, kind: Any, error: Any, trace: Any) -> Any:
        leave(self, kind, error, trace)
        note("stop", self.message, timer=self.number, error=kind and kind.__name__)

    Timer.__enter__, Timer.__exit__ = started, stopped


def record_environments() -> None:
    make = skyrl_gym.make

    def making(*args: Any, **kwargs: Any) -> Any:
        environment = make(*args, **kwargs)
        note("made", "environment")
        return environment

    skyrl_gym.make = making
    record(made_up.Add, "step")


class Logger:
    """Notes what is logged."""

    def log(self, data: dict[str, Any], step: int) -> None:
        note("log", "", data=data, step=step)


def settings(cfg: Any) -> dict[str, Any]:
    found = {}
    for path in SETTINGS:
        value: Any = asdict(cfg)
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            found[path] = value.replace(str(made_up.FOLDER), "/run") if isinstance(value, str) else value
    return found


training: Any = None


async def train(trainer: Any) -> None:
    global training
    training = asyncio.current_task()
    await trainer.train()


def main(file: str, kind: str, *overrides: str) -> None:
    asynchronous = made_up.ASYNCHRONOUS if kind == "async" else ()
    # Without threads of its own an environment's step is one event after the other.
    cfg = made_up.configuration("environment.skyrl_gym.max_env_workers=0", *asynchronous, *overrides)
    record_timers()
    record_environments()
    record(SkyRLGymGenerator, "generate")
    for name in ("eval", "load_checkpoints", "fwd_logprobs_values_reward"):
        record(RayPPOTrainer, name)
    if hasattr(RayPPOTrainer, "_execute_forward_pass"):
        record(RayPPOTrainer, "_execute_forward_pass")
    record(FullyAsyncRayPPOTrainer if kind == "async" else RayPPOTrainer, "train")
    record(made_up.Dispatch, "forward")
    record(made_up.Dispatch, "optim_step")
    trainer = made_up.make(cfg, kind)
    made_up.take(trainer.tracker, Logger())
    asyncio.run(train(trainer))
    head = {"version": metadata.version("skyrl"), "settings": settings(cfg)}
    lines = ",\n".join(events)
    Path(file).write_text(f'{json.dumps(head)[:-1]},\n"events": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
