"""Plays what a real run of SkyRL did, through the stand-ins, on the clock of a test.

A trace has one event a line: when it was (seconds), what kind it is, of what, in which task, and what is known of
it. Each task is a thread here, which has its context as a task does; only one of them runs at a time.
"""

import json
import queue
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .conftest import Batch, Sky, answered

LONGEST = 30.0
"""Seconds that one event may take."""


class Event(NamedTuple):
    """One line of a trace."""

    at: float
    kind: str
    """start or stop of a timer; log; call, return or raise of a function; made of an environment."""
    name: str
    where: str
    """The task, `main` for that of the loop."""
    data: dict[str, Any]


class Trace:
    """One recorded run."""

    def __init__(self, path: Path) -> None:
        found = json.loads(path.read_text())
        self.version: str = found["version"]
        self.settings: dict[str, Any] = found["settings"]
        self.events = [Event(*event) for event in found["events"]]
        self.kind = "async" if any(event.where != "main" for event in self.events) else "sync"

    def of(self, kind: str, name: str) -> list[Event]:
        return [event for event in self.events if (event.kind, event.name) == (kind, name)]

    @property
    def logged(self) -> list[dict[str, Any]]:
        """What was logged, call by call."""
        return [event.data["data"] for event in self.of("log", "")]

    @property
    def trained(self) -> list[dict[str, Any]]:
        """What was logged of iterations; the asynchronous trainer logs times in a call of their own."""
        return [data for data in self.logged if "trainer/global_step" in data]


class Raised(Exception):
    """In place of whatever a recorded call raised."""


class _Task:
    """One thread, which waits for the next of its events."""

    def __init__(self, replay: "Replay") -> None:
        self._replay = replay
        self._events: queue.Queue[Event | None] = queue.Queue()
        self._ready = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        assert self._ready.wait(LONGEST)

    def play(self, event: Event | None) -> None:
        """Let an event happen; returns when it has, or when a function that it called has begun."""
        self._ready.clear()
        self._events.put(event)
        assert self._ready.wait(LONGEST), event
        if self.error is not None:
            raise self.error

    def _work(self) -> None:
        try:
            self.go_on()
        except BaseException as error:  # noqa: BLE001 - told to the test
            self.error = error
        self._ready.set()

    def go_on(self) -> Any:
        """Play until the function that was called returns."""
        while True:
            self._ready.set()
            event = self._events.get(timeout=LONGEST)
            if event is None:
                return None
            if event.kind == "return":
                return _result(event)
            if event.kind == "raise":
                raise Raised(event.name)
            self._replay.happen(event)


class Replay:
    """Plays one trace to its end."""

    def __init__(self, sky: Sky, trace: Trace) -> None:
        self._sky = sky
        self._timers: dict[int, Any] = {}
        self._here = threading.local()
        self.timed: dict[str, float] = {}
        """Seconds that the stand-in timers measured, by name."""
        sky.script.run = lambda name, _arguments: None if name == "log" else self._here.task.go_on()
        self.trainer = sky.trainer(trace.kind, trace.settings)
        self._environment: Any = None
        tasks: dict[str, _Task] = {}
        now = 0.0
        steps = _steps(trace)
        for event in trace.events:
            sky.pass_(max(0.0, event.at - now))
            now = max(now, event.at)
            if (event.kind, event.name) == ("start", "step"):
                self.trainer.global_step = next(steps)
            if event.where not in tasks:
                tasks[event.where] = _Task(self)
            tasks[event.where].play(event)
        for task in tasks.values():
            task.play(None)

    def happen(self, event: Event) -> None:
        """In the thread of its task."""
        getattr(self, f"_{event.kind}")(event)

    def _start(self, event: Event) -> None:
        timer = self._sky.module("utils.utils").Timer(event.name, self.timed)
        type(timer).__enter__(timer)
        self._timers[event.data["timer"]] = timer

    def _stop(self, event: Event) -> None:
        error = Raised(event.name) if event.data["error"] else None
        timer = self._timers.pop(event.data["timer"])
        type(timer).__exit__(timer, error and Raised, error, None)

    def _log(self, event: Event) -> None:
        self.trainer.tracker.log(event.data["data"], event.data["step"])

    def _made(self, _event: Event) -> None:
        self._environment = self._sky.make_environment()

    def _call(self, event: Event) -> None:
        self._here.task = threading.current_thread()._target.__self__  # type: ignore[attr-defined]
        trainer, name, data = self.trainer, event.name, event.data
        try:
            if name in ("train", "eval"):
                self._sky.run(getattr(trainer, name)())
            elif name == "generate":
                self._sky.generate(trainer, data["phase"])
            elif name == "step":
                self._environment.step("")
            elif name == "fwd_logprobs_values_reward":
                trainer.fwd_logprobs_values_reward(Batch(data["lengths"], data["pad_size"]))
            elif name == "_execute_forward_pass":
                trainer._execute_forward_pass(data["model"], None, "", None)
            elif name == "load_checkpoints":
                trainer.load_checkpoints()
            else:
                getattr(trainer.dispatch, name)(*([data["model"], None] if name == "forward" else [data["model"]]))
        except Raised:
            pass


def _steps(trace: Trace) -> Any:
    """The number of each start of an iteration's timer: that with which it is logged next."""
    logs = [(event.at, event.data["data"].get("trainer/global_step")) for event in trace.of("log", "")]
    for event in trace.of("start", "step"):
        yield next((step for at, step in logs if at > event.at and step is not None), 0)


def _result(event: Event) -> Any:
    data: Mapping[str, Any] = event.data
    if event.name == "generate":
        more = {key: data[key] for key in ("stop_reasons", "is_last_step") if key in data}
        return answered(data["prompts"], data["responses"], **more)
    if event.name == "load_checkpoints":
        return data["step"], None
    return data.get("scores", dict(data))
