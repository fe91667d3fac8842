"""Plays what a real run of AReaL did, through the stand-ins, on the clock of a test.

A trace has one event a line, see `real/programs/recording.py`.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from .conftest import Areal

TRACES = Path(__file__).parent / "traces"


class Event(NamedTuple):
    """One line of a trace."""

    at: float
    kind: str
    """start or stop of a timer; call, return or raise of a function."""
    name: str
    data: dict[str, Any]


class Trace:
    """One recorded run."""

    def __init__(self, name: str) -> None:
        found = json.loads((TRACES / f"{name}.json").read_text())
        self.version: str = found["version"]
        self.events = [Event(*event) for event in found["events"]]

    @property
    def commits(self) -> list[dict[str, Any]]:
        """What was committed, in order."""
        return [event.data for event in self.events if (event.kind, event.name) == ("call", "commit")]


class Replay:
    """Plays one trace to its end."""

    def __init__(self, areal: Areal, trace: Trace, config: Any) -> None:
        self._areal = areal
        self._events = iter(trace.events)
        self._now = trace.events[0].at
        self._trainer = areal.trainer(config)
        self._timers: list[Any] = []
        areal.script.run = lambda _name, _arguments: self._go_on()
        self._go_on()

    def _go_on(self) -> Any:
        """Play until the function that was called returns."""
        for event in self._events:
            self._areal.pass_(event.at - self._now)
            self._now = event.at
            if event.kind == "return":
                return _recovered(event.data["result"]) if event.name == "load" else event.data["result"]
            getattr(self, f"_{event.kind}")(event)
        return None

    def _start(self, event: Event) -> None:
        timer = self._areal.module("utils.stats_tracker").record_timing(event.name)
        timer.__enter__()
        self._timers.append(timer)

    def _stop(self, _event: Event) -> None:
        self._timers.pop().__exit__(None, None, None)

    def _call(self, event: Event) -> None:
        data = event.data
        if event.name == "train":
            self._trainer.recover_info = _recovered(data["recovered"])
            self._trainer.train(workflow=None)
        elif event.name == "commit":
            self._areal.commit(data["global_step"], **data["data"])
        elif event.name == "check":
            self._areal.module("utils.timeutil").EpochStepTimeFreqCtl().check(0, 1)
        elif event.name == "save":
            self._areal.module("utils.saver").Saver().save(None, 0, 0, 0, name=data["name"])
        elif event.name == "load":
            self._areal.module("utils.recover").RecoverHandler().load(None, None, None, None, None)
        else:
            self._areal.module("utils.recover").RecoverHandler()._load_checkpoint(None)


def _recovered(step: int | None) -> Any:
    return None if step is None else SimpleNamespace(last_step_info=SimpleNamespace(global_step=step))
