"""Plays what one process of a real run of OpenRLHF did, through the stand-ins, on the clock of a test.

A trace has one event a line: when it was (seconds), call, return or raise, of what, and what is known of it.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .conftest import Openrlhf, rollout


class Event(NamedTuple):
    """One line of a trace."""

    at: float
    kind: str
    name: str
    data: dict[str, Any]


class Trace:
    """One recorded process."""

    def __init__(self, path: Path) -> None:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        began = lines[0][0]
        self.began = began
        self.events = [Event(at - began, *rest) for at, *rest in lines]

    def of(self, kind: str, name: str) -> list[dict[str, Any]]:
        return [event.data for event in self.events if (event.kind, event.name) == (kind, name)]

    def spent(self, name: str) -> list[tuple[float, dict[str, Any], dict[str, Any]]]:
        """Seconds of each call of a function, with what it was called with and what it returned."""
        found, begun = [], []
        for event in self.events:
            if event.name == name and event.kind == "call":
                begun.append(event)
            elif event.name == name:
                call = begun.pop()
                found.append((event.at - call.at, call.data, event.data))
        return found


class Replay:
    """Plays one trace to its end."""

    def __init__(self, openrlhf: Openrlhf, trace: Trace) -> None:
        self._openrlhf = openrlhf
        self._trace = trace
        self._events: Iterator[Event] = iter(trace.events)
        self._now = 0.0
        self._answers: dict[int, list[Any]] = {}
        self._queue = openrlhf.queue()
        self._groups = openrlhf.groups
        openrlhf.script.run = lambda _name, _arguments: self._go_on()
        for event in self._events:
            self._call(event)

    def _pass(self, event: Event) -> None:
        self._openrlhf.pass_(max(0.0, event.at - self._now))
        self._now = max(event.at, self._now)

    def _go_on(self) -> Any:
        """Play until the function that was called returns."""
        for event in self._events:
            if event.kind == "return":
                self._pass(event)
                return self._result(event)
            if event.kind == "raise":
                self._pass(event)
                raise RuntimeError(event.data["error"])
            self._call(event)
        return None

    def _call(self, event: Event) -> None:
        self._pass(event)
        openrlhf, data = self._openrlhf, event.data
        kind, _, name = event.name.partition(".")
        if name == "__init__":
            self._make(kind, data)
        elif kind == "Queue":
            getattr(self._queue, name)(**({"item": data["item"]} if name == "put" else {}))
        elif kind == "RayActorGroup":
            openrlhf.groups.get(data["group"], openrlhf.groups["actor_model_group"]).async_run_method(
                data["method"]
            )
        else:
            owner = {
                "BasePPOTrainer": openrlhf.trainer,
                "SamplesGenerator": openrlhf.generator,
                "RemoteExperienceMaker": openrlhf.maker,
            }[kind]
            getattr(owner, name)(**self._arguments(name, data))

    def _make(self, kind: str, data: Mapping[str, Any]) -> None:
        settings = flat(data["args"])
        if kind == "SamplesGenerator":
            self._openrlhf.make_generator(**settings)
        else:
            generator = self._openrlhf.generator
            self._openrlhf.make_trainer(critic=data["critic"], **settings)
            self._openrlhf.generator = generator or self._openrlhf.generator
            self._openrlhf.trainer.rollout_queue = self._queue
            if settings.get("eval__dataset") and generator is not None:
                self._openrlhf.trainer.eval_dataloader = ["prompts"]
        self._go_on()  # it returns

    def _arguments(self, name: str, data: Mapping[str, Any]) -> dict[str, Any]:
        if name == "make_experience_batch":
            return {"rollout_samples": self._rollouts(data["rollouts"])}
        if name == "_dispatch_forward":
            return {"group": self._groups[data["group"]], "sync_condition": data["sync"]}
        if name == "_flatten_results":
            return {"refs": self._answers.pop(data["answer"], []), "duplicate_factor": 1}
        if name == "save_logs_and_checkpoints":
            return {"global_step": data["global_step"], "logs_dict": data["logs"]}
        if name == "save_best_checkpoint":
            return {"eval_metrics": data["scores"], "global_step": data["global_step"]}
        given: dict[str, dict[str, Any]] = {
            "train_step": {"rollout_samples": [], "global_step": 0},
            "ppo_train": {"global_steps": 0},
            "compute_advantages_and_returns": {"experiences": []},
        }
        return given.get(name, {})

    def _result(self, event: Event) -> Any:
        name, data = event.name.partition(".")[2], event.data
        if name == "generate_samples":
            self._openrlhf.generator._sample_buffer = self._rollouts(data["buffer"])
            self._openrlhf.generator._dataloader_iter = object() if data["more"] else None
            return self._rollouts(data["rollouts"]), None, data["consumed"], data["exhausted"]
        if name == "_dispatch_forward":
            self._answers[data["answer"]] = answer = [data["answer"]]
            return answer
        if name == "get":
            items: dict[Any, Any] = {"rollouts": ([], {}, None, 0.0), "eval": ("eval", 0, {})}
            return items.get(data["item"], data["item"])
        return data

    def _rollouts(self, found: list[list[Any]]) -> list[Any]:
        began = self._trace.began
        return [
            rollout(given, generated, reward, turns, None if made is None else made - began)
            for given, generated, reward, turns, made in found
        ]


def flat(args: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested arguments as keywords of `make_trainer`."""
    found: dict[str, Any] = {}
    for name, value in args.items():
        if isinstance(value, Mapping):
            found.update(flat(value, f"{above}{name}__"))
        else:
            found[f"{above}{name}"] = value
    return found
