"""Threads: work that is handed to another thread stays in the loop and phase that handed it over.

Context variables follow tasks but not threads. `Thread.start` and `ThreadPoolExecutor.submit` are where work
changes threads; the function they are given is bound to a copy of the present context, if a loop or phase of ours
is open in it, and is left alone otherwise.
"""

from __future__ import annotations

import contextvars
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
    if context.current() is not None:
        thread, run = call.instance, call.instance.run
        copied = contextvars.copy_context()
        thread.run = lambda: copied.run(run)
