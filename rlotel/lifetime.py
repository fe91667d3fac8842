"""From `instrument()` to the end of the process: exit, SIGTERM and fork, and one thread that waits for them."""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import signal
import threading
import time
import weakref
from collections import deque
from multiprocessing import util as multiprocessing_util
from typing import TYPE_CHECKING

from rlotel.ending import Ending
from rlotel.preemption import END, STIR, STOP, TASK, TOLD, Inbox, Preemption, hold_back, let_through
from rlotel.semconv.attributes import RunState

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlotel.errors import Faults
    from rlotel.patching import Patches

EXIT_SECONDS = 4.5
"""What the last export may take as the interpreter exits."""
EXIT_LIMIT = 5.5
"""Seconds after which the interpreter goes on exiting, whatever the last export does. More than `EXIT_SECONDS`
only for a collector that took an export just before: the last one keeps its distance."""
SIGTERM_SECONDS = 2.5
"""What the last export may take before SIGTERM is passed on; a Spot machine has 15 s to live."""

_living: weakref.WeakSet[Lifetime] = weakref.WeakSet()
_registered: list[bool] = []


class Lifetime:
    """Calls back at the moments that matter, in its own thread: never on an interrupted stack.

    Args:
        finish: ends the telemetry, as the process does; told how the run ended and the seconds it has. Called
            once.
        preempted: SIGTERM came, but a handler of the user's decides what follows; told the seconds it has.
        on_fork_child: everything must be forgotten, because this is a forked child now. Called in it, in the
            thread that forked.
        freeze: called `freeze_after` seconds from the start, and from each `stir`.
        patches: by them `sys.exit` is watched, and left alone again once they are undone.
        faults: where errors of these are reported.
        waits: asked before `freeze`: whether to wait as long again.
    """

    def __init__(
        self,
        finish: Callable[[RunState, float], None],
        preempted: Callable[[float], None],
        on_fork_child: Callable[[], None],
        freeze: Callable[[], None],
        freeze_after: float,
        patches: Patches,
        faults: Faults,
        waits: Callable[[], bool] = lambda: False,
    ) -> None:
        self._finish = finish
        self._told_preempted = preempted
        self._on_fork_child = on_fork_child
        self._freeze = freeze
        self._freeze_after = freeze_after
        self._waits = waits
        self._patches = patches
        self._faults = faults
        self._ending = Ending()
        self._thread: threading.Thread | None = None
        self._inbox: Inbox | None = None
        self._preemption: Preemption | None = None
        self._forget()

    def start(self) -> None:
        """Begin: start the thread, watch for the end, for SIGTERM (in the main thread only) and for forks."""
        _living.add(self)
        if not _registered and hasattr(os, "register_at_fork"):
            _registered.append(True)  # it cannot be undone, so it is done once
            os.register_at_fork(before=_before_fork, after_in_parent=let_through, after_in_child=_after_fork)
        self._pid = os.getpid()  # it may have been made before a fork
        # A forked child of multiprocessing runs no atexit handlers, but finalizers that are registered in it.
        multiprocessing_util.register_after_fork(self, Lifetime._in_multiprocessing_child)
        if multiprocessing.parent_process() is not None:
            self._in_multiprocessing_child()
        atexit.register(self._at_exit)
        self._ending.start(self._patches)
        self.stir()

    def stir(self) -> None:
        """Count down to `freeze` anew. A forked child has no thread, until this gives it one."""
        if self._inbox is not None:
            self._inbox.put(STIR)
            return
        self._inbox = Inbox()
        self._preemption = Preemption(self._inbox)
        thread = threading.Thread(target=self._run, name="rlotel-lifetime", daemon=True)
        thread.start()
        self._thread = thread  # only now: one that could not be started cannot be waited for
        self._preemption.install()

    def soon(self, task: Callable[[], None]) -> None:
        """Have something done in the thread, if there is one. Neither waits nor raises."""
        if self._inbox is not None:
            self._tasks.append(task)
            self._inbox.put(TASK)

    def stop(self) -> None:
        """Undo it, without calling `finish`. Handlers that others have replaced since stay theirs."""
        _living.discard(self)
        atexit.unregister(self._at_exit)
        if self._preemption is not None:
            self._preemption.remove()
        if self._inbox is not None and self._thread is not None:
            self._inbox.put(STOP)
            if threading.current_thread() is not self._thread:
                self._thread.join(1.0)
                self._inbox.close()
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._thread = self._inbox = self._preemption = None
        self._tasks: deque[Callable[[], None]] = deque()
        self._state = RunState.COMPLETED
        self._over = threading.Event()
        self._finished = False
        self._preempted = False

    # In the thread.

    def _run(self) -> None:
        inbox, over = self._inbox, self._over
        freeze_at: float | None = time.monotonic() + self._freeze_after
        while inbox is not None:
            byte = inbox.get(None if freeze_at is None else max(0.001, freeze_at - time.monotonic()))
            if freeze_at is not None and time.monotonic() >= freeze_at:
                freeze_at = None
                with self._faults.contain("freeze"):
                    if self._waits():
                        freeze_at = time.monotonic() + self._freeze_after
                    else:
                        self._freeze()
            if byte == STOP:
                return
            while self._tasks:
                with self._faults.contain("task"):
                    self._tasks.popleft()()
            if byte == STIR:
                freeze_at = time.monotonic() + self._freeze_after
            if byte == END:
                self._end(self._state, EXIT_SECONDS)
                over.set()
                return
            if byte == TOLD or (byte == signal.SIGTERM and self._preemption and self._preemption.ours):
                self._sigterm()

    def _sigterm(self) -> None:
        preemption = self._preemption
        if self._preempted or preemption is None:
            return
        self._preempted = True
        if preemption.default:
            self._end(RunState.PREEMPTED, SIGTERM_SECONDS)
        else:
            with self._faults.contain("preempted"):
                self._told_preempted(SIGTERM_SECONDS)
        preemption.pass_on()

    def _end(self, state: RunState, seconds: float) -> None:
        if not self._finished:
            self._finished = True
            with self._faults.contain("finish"):
                self._finish(state, seconds)

    # In the main thread.

    def _at_exit(self) -> None:
        if self._thread is None or self._inbox is None or os.getpid() != self._pid or self._over.is_set():
            return
        self._state = RunState.PREEMPTED if self._preempted else self._ending.state()
        self._inbox.put(END)
        self._over.wait(EXIT_LIMIT)

    # In a forked child.

    def _in_child(self) -> None:
        inherited, preemption = self._inbox, self._preemption
        if preemption is not None:
            with contextlib.suppress(ValueError):  # no main thread: then no handler of Python's runs either
                preemption.remove()
        if inherited is not None:
            inherited.close()  # the child's copies
        self._forget()
        with self._faults.contain("on_fork_child"):
            self._on_fork_child()

    def _in_multiprocessing_child(self) -> None:
        multiprocessing_util.Finalize(None, self._at_exit, exitpriority=10)


def _before_fork() -> None:
    if _living:
        hold_back()


def _after_fork() -> None:
    try:
        for lifetime in list(_living):
            lifetime._in_child()  # noqa: SLF001 - of this module
    finally:
        let_through()
