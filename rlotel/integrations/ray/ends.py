"""Before Ray ends an actor the hard way, the actor exports what it has.

A driver that ends, `ray.shutdown` and `ray.kill` give an actor no chance to. Each waits a little for those it
created, and for those that these created in turn; one that is busy does not answer, and loses what it recorded
since its last export. Task workers cannot be asked, since nobody has a handle of them: they send their spans right
after each task, and a driver's end leaves them the time for it.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from rlotel.errors import Faults
from rlotel.integrations.ray import facts
from rlotel.patching import Call, Patches
from rlotel.recorder import Recorder

END_WAIT = 2.0
"""Seconds that the end of a job may take longer for it."""
TASKS_WAIT = 0.4
"""Seconds that the end of a job takes longer at least: twice what a task worker lets a span wait."""
KILL_WAIT = 1.0
"""Seconds that one `ray.kill` may take longer for it."""
KILLS_WAIT = 5.0
"""Seconds that all of them together may: some programs kill thousands, one after the other."""

_actors: weakref.WeakSet[Any] = weakref.WeakSet()
"""Handles of the actors that this process created. They are kept alive by the user alone."""


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch where actors are created and ended."""
    ends = _Ends(recorder.faults)
    patches.watch("ray.actor:ActorClass._remote", after=lambda call: _actors.add(call.result))
    patches.watch("ray:init", after=lambda _: ends.at_exit())
    patches.watch("ray:shutdown", before=lambda _: ends.all_end())
    patches.watch("ray:kill", before=ends.one_ends)
    patches.when_undone(lambda: atexit.unregister(ends.all_end))
    ends.at_exit()


class _Ends:
    """The ends of this process's actors."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._left = KILLS_WAIT

    def at_exit(self) -> None:
        """Be asked before Ray is, which has asked already if it is imported: the last one that asks is first."""
        if _connected_driver():
            atexit.unregister(self.all_end)
            atexit.register(self.all_end)

    def all_end(self) -> None:
        """The job ends."""
        with self._faults.contain("end of a Ray job"):
            if _connected_driver():
                tasks_done = time.monotonic() + TASKS_WAIT
                flush(list(_actors), END_WAIT)
                time.sleep(max(0.0, tasks_done - time.monotonic()))

    def one_ends(self, call: Call) -> None:
        """An actor is killed."""
        started = time.monotonic()
        flush([call.arguments["actor"]], min(KILL_WAIT, self._left))
        self._left = max(0.0, self._left - (time.monotonic() - started))


def flush_created(seconds: float) -> None:
    """Let the actors that this process created export, and theirs: for an actor whose work is done.

    It will be ended without being asked, and they with it.
    """
    flush(list(_actors), seconds)


def flush(actors: Iterable[Any], seconds: float) -> None:
    """Let actors export, and those they created; returns when all have, or after `seconds`."""
    import ray

    deadline = time.monotonic() + seconds
    waiting = list(actors)
    while waiting and (left := deadline - time.monotonic()) > 0.05:
        asked = []
        for actor in waiting:
            with contextlib.suppress(Exception):  # a handle of another session of Ray, or no actor at all
                asked.append(actor.__ray_call__.remote(_flush_there(), left * 0.8))
        answered, _ = ray.wait(asked, num_returns=len(asked), timeout=left) if asked else ([], [])
        waiting = []
        for answer in answered:
            with contextlib.suppress(Exception):  # it has died already
                waiting += ray.get(answer)


def _flush_there() -> Callable[[Any, float], list[Any]]:
    """What is called in the actor. It is sent by value, and needs no rlotel there."""

    def there(_actor: Any, seconds: float) -> list[Any]:
        session, ends = sys.modules.get("rlotel.session"), sys.modules.get("rlotel.integrations.ray.ends")
        recorder = session.recorder() if session is not None else None
        if recorder is None or ends is None:
            return []
        recorder.process.flush(seconds)
        return list(ends._actors)  # noqa: SLF001 - of this module

    return there


def _connected_driver() -> bool:
    ray = facts.connected()
    if ray is None:
        return False
    return bool(ray._private.worker.global_worker.mode == ray.SCRIPT_MODE)  # noqa: SLF001 - nothing public tells
