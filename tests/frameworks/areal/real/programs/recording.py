"""Writes down what happens in AReaL's loop where rlotel watches it, for tests to play it again without AReaL.

An event is when it was (seconds), what kind it is, of what, and what is known of it.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from areal.trainer.rl_trainer import PPOTrainer
from areal.utils import stats_tracker
from areal.utils.recover import RecoverHandler
from areal.utils.saver import Saver
from areal.utils.stats_logger import StatsLogger
from areal.utils.timeutil import EpochStepTimeFreqCtl
from areal.version import version_info

EVENTS: list[tuple[float, str, str, dict[str, Any]]] = []
STARTED = time.perf_counter()


def event(kind: str, what: str, **known: Any) -> None:
    """Something happened."""
    EVENTS.append((round(time.perf_counter() - STARTED, 6), kind, what, known))


def around(owner: type, name: str, known: Callable[..., dict[str, Any]]) -> None:
    """Note that a method is called, what is known of that, and that it returns."""
    original = getattr(owner, name)

    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        event("call", name, **known(self, *args, **kwargs))
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            event("raise", name, error=type(error).__name__)
            raise
        event("return", name, result=result if isinstance(result, bool) else _step(result))
        return result

    setattr(owner, name, noted)


def _step(recovered: Any) -> int | None:
    return None if recovered is None else int(recovered.last_step_info.global_step)


def start() -> None:
    """Note everything from now on."""
    timing = stats_tracker.record_timing

    @contextlib.contextmanager
    def record_timing(key: str) -> Iterator[None]:
        event("start", key)
        try:
            with timing(key):
                yield
        finally:
            event("stop", key)

    stats_tracker.record_timing = record_timing
    around(EpochStepTimeFreqCtl, "check", lambda *_args, **_kwargs: {})
    around(Saver, "save", lambda *_args, name="default", **_kwargs: {"name": name})
    around(RecoverHandler, "load", lambda *_args, **_kwargs: {})
    around(RecoverHandler, "_load_checkpoint", lambda *_args, **_kwargs: {})
    around(PPOTrainer, "train", lambda trainer, **_: {"recovered": _step(trainer.recover_info)})
    around(StatsLogger, "commit", _commit)


def _commit(_logger: Any, epoch: int, step: int, global_step: int, data: dict[str, float]) -> dict[str, Any]:
    short = {key: round(value, 6) for key, value in data.items()}
    return {"epoch": epoch, "step": step, "global_step": global_step, "data": short}


def write(path: Path) -> None:
    """All that was noted."""
    lines = ",\n".join(json.dumps(one) for one in EVENTS)
    path.write_text(f'{{"version": "{version_info.version}", "events": [\n{lines}\n]}}\n')
