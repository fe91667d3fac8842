"""What a model says of itself: who learns, in which environment, in batches of how many rows."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from rlotel.integrations.configuration import product, version
from rlotel.integrations.loops import Setup
from rlotel.patching import Call
from rlotel.recorder import Recorder


class Environments:
    """The names of environments, those in processes of their own included."""

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def made(self, call: Call) -> None:
        """`make_vec_env` has made some."""
        name = call.arguments.get("env_id")
        if isinstance(name, str):
            self._made[call.result.unwrapped] = name

    def name(self, env: Any) -> str | None:
        """That of a vector environment; None if it cannot be known without asking another process."""
        if env is None:
            return None
        vector = env.unwrapped
        if vector in self._made:
            return self._made[vector]
        members = getattr(vector, "envs", None)
        one = members[0] if members else vector
        spec = getattr(one, "spec", None)
        if spec is not None:
            return str(spec.id)
        remote = one is vector and type(vector).__module__.startswith("stable_baselines3.")
        return None if remote else type(getattr(one, "unwrapped", one)).__name__


def identify(recorder: Recorder, model: Any, environments: Environments) -> None:
    """Tell who learns what."""
    recorder.identify(
        system="stable-baselines3",
        system_version=version("stable_baselines3"),
        algorithm=type(model).__name__,
        model=type(model.policy).__name__ if getattr(model, "policy", None) is not None else None,
        environment=environments.name(model.env),
    )


def on_policy(model: Any) -> bool:
    """Whether it learns from what it has just sampled, all of it."""
    return hasattr(model, "rollout_buffer")


def batches(model: Any) -> Setup:
    """How many rows a rollout asks for, and an optimizer step."""
    steps = getattr(model, "n_steps", None) if on_policy(model) else None
    rows = product(steps, model.n_envs)
    return Setup(sample_batch_size=rows, train_batch_size=getattr(model, "batch_size", rows))
