"""Tune: trials run in actors, and the process that launches them has no loop of its own."""

from __future__ import annotations

import sys
from typing import Any

from rlotel.integrations.rllib import setup
from rlotel.patching import Call
from rlotel.recorder import Recorder


class Trials:
    """What the launcher of trials knows."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def begin(self, call: Call) -> None:
        """Before a `Tuner` runs its trials."""
        tuner = call.instance
        self._launch(getattr(tuner, "trainable", None), getattr(tuner, "param_space", None))

    def run(self, call: Call) -> None:
        """Before `tune.run` does."""
        arguments = call.arguments
        self._launch(arguments.get("run_or_experiment"), arguments.get("config"))

    def _launch(self, trainable: Any, config: object) -> None:
        if self._recorder.process.worker:
            return
        self._recorder.loop_is_elsewhere()
        name = _algorithm(trainable)
        if name is not None:
            self._recorder.identify(**setup.identity(name, config))


def _algorithm(trainable: Any) -> str | None:
    """The name of the algorithm that trials are of, if they are of one."""
    rllib, registry = (sys.modules.get(f"ray.rllib.algorithms.{name}") for name in ("algorithm", "registry"))
    if rllib is None or registry is None:
        return None  # whatever it trains, this process knows nothing of it
    if isinstance(trainable, str):
        return trainable if trainable in registry.ALGORITHMS else None
    return trainable.__name__ if isinstance(trainable, type) and issubclass(trainable, rllib.Algorithm) else None
