"""Plays what a real run of NeMo RL did, through the stand-ins, on the clock of a test.

A trace has one event a line: when it was (seconds), what kind it is, of what, and what is known of it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .conftest import Nemo, Rows, batch


class Event(NamedTuple):
    """One line of a trace."""

    at: float
    kind: str
    """start, stop or reset of a timer; log; call, return or raise of a function."""
    name: str
    data: dict[str, Any]


class Trace:
    """One recorded run."""

    def __init__(self, path: Path) -> None:
        found = json.loads(path.read_text())
        self.version: str = found["version"]
        self.events = [Event(*event) for event in found["events"]]

    def logged(self, prefix: str) -> list[dict[str, Any]]:
        """What was logged with a prefix, call by call."""
        return [event.data["metrics"] for event in self.of("log", prefix)]

    def of(self, kind: str, name: str) -> list[Event]:
        return [event for event in self.events if (event.kind, event.name) == (kind, name)]


class Replay:
    """Plays one trace to its end."""

    def __init__(self, nemo: Nemo, trace: Trace, **arguments: Any) -> None:
        self._nemo = nemo
        self._events = iter(trace.events)
        self._now = 0.0
        self._timers: dict[int, Any] = {}
        self._arguments = arguments
        self.timed: dict[str, float] = {}
        """Seconds that the stand-in timers measured, by label."""
        nemo.script.run = lambda _name, _arguments: self._go_on()
        self._go_on()

    def _go_on(self) -> Any:
        """Play until the function that was called returns."""
        for event in self._events:
            self._nemo.pass_(max(0.0, event.at - self._now))
            self._now = max(event.at, self._now)
            if event.kind == "return":
                return self._result(event)
            getattr(self, f"_{event.kind}")(event)
        return None

    def _timer(self, event: Event) -> Any:
        return self._timers.setdefault(event.data["timer"], self._nemo.timer())

    def _start(self, event: Event) -> None:
        self._timer(event).start(event.name)

    def _stop(self, event: Event) -> None:
        self.timed[event.name] = self.timed.get(event.name, 0.0) + self._timer(event).stop(event.name)

    def _reset(self, event: Event) -> None:
        self._timer(event).reset()

    def _log(self, event: Event) -> None:
        data = event.data
        self._nemo.logger.log_metrics(data["metrics"], data["step"], event.name, **data["more"])

    def _call(self, event: Event) -> None:
        nemo, name, data = self._nemo, event.name, event.data
        if name in ("train", "get_logprobs", "get_reference_policy_logprobs"):
            more = {"loss_fn": None} if name == "train" else {}
            getattr(nemo.policy, name)(batch(*data["lengths"]), **more)
        elif hasattr(nemo.checkpointer, name):
            getattr(nemo.checkpointer, name)(*data.values())
        else:
            algorithms, rollouts = nemo.module("algorithms.grpo"), nemo.module("experience.rollouts")
            function = getattr(algorithms, name, None) or getattr(rollouts, name)
            names = function.__code__.co_varnames[: function.__code__.co_argcount]
            given = {"policy": nemo.policy, "logger": nemo.logger, **self._arguments}
            function(**{name: given.get(name) for name in names})

    def _result(self, event: Event) -> Any:
        data = event.data
        if "rollouts" in data:
            logs = [[_message(*message) for message in messages] for messages in data["rollouts"]]
            return {"message_log": logs}, data["metrics"]
        if "loss" in data:
            return {**data, "loss": Rows(data["loss"])}
        return None


def _message(tokens: int, generated: bool) -> Mapping[str, Any]:
    return {"token_ids": range(tokens), **({"generation_logprobs": range(tokens)} if generated else {})}
