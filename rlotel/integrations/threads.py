"""Threads: work that is handed to another thread stays in the loop and phase that handed it over.

Context variables follow tasks but not threads. `Thread.start` and `ThreadPoolExecutor.submit` are where work
changes threads; the function they are given is bound to a copy of the present context, if a loop or phase of ours
is open in it, and is left alone otherwise.
"""

from __future__ import annotations

import contextvars
from concurrent.futures import thread as pool
from typing import Any

from rlotel import context
from rlotel.patching import Call, Patches
from rlotel.recorder import Recorder


def connect(patches: Patches, recorder: Recorder) -> None:  # noqa: ARG001 - every integration gets both
    """Watch the two places."""
    patches.watch("concurrent.futures.thread:ThreadPoolExecutor.submit", change=_carry_submitted)
    patches.watch("threading:Thread.start", before=_carry_target)


def _carry_submitted(call: Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if context.current() is None or not call.args:
        return call.args, call.kwargs
    function, *rest = call.args
    return (contextvars.copy_context().run, function, *rest), call.kwargs


def _carry_target(call: Call) -> None:
    thread = call.instance
    # A pool's thread outlives the loop that happened to start it; what it is given carries its own context.
    if context.current() is None or getattr(thread, "_target", None) is getattr(pool, "_worker", pool):
        return
    run, copied = thread.run, contextvars.copy_context()

    def run_there() -> None:
        del thread.run  # or the thread would hold on to itself
        copied.run(run)

    thread.run = run_there
