"""SIGTERM, which ends a Spot machine, a Kubernetes pod or a Ray worker: noticed, then passed on unchanged.

The handler does nothing but tell the thread that already waits: on the stack that a signal interrupts, any lock
may be held. The thread learns of it even if the main thread does not return from C code (a collective that hangs),
as the signal's number is also written to a socket by the interpreter itself; the default action, which would have
ended such a process, then still does.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

STOP, END, TOLD, STIR, TASK = 0xF0, 0xF1, 0xF2, 0xF3, 0xF4
"""Bytes that are no number of a signal: stop the thread; the interpreter exits; our handler was
called; count down anew; there is something to do."""


class Inbox:
    """Wakes the thread of a `Lifetime`, from anywhere, a signal handler included."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._theirs.setblocking(False)

    def fileno(self) -> int:
        """The descriptor to write to."""
        return self._theirs.fileno()

    def put(self, byte: int) -> None:
        """Leave a byte. Neither waits nor raises."""
        with contextlib.suppress(OSError):  # full of bytes, so that the thread wakes anyway; or closed
            self._theirs.send(bytes([byte]))

    def get(self, timeout: float | None) -> int | None:
        """The next byte, or None if there is none within `timeout` seconds."""
        self._ours.settimeout(timeout)
        try:
            data = self._ours.recv(1)
        except TimeoutError:
            return None
        return data[0] if data else None

    def close(self) -> None:
        """Close both ends."""
        self._ours.close()
        self._theirs.close()


class Preemption:
    """Our handler of SIGTERM. Installed and removed in the main thread only; elsewhere both do nothing."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._pid = os.getpid()
        self._previous: Any = None
        self._installed = False
        self._passing = False
        self._wakes = False
        self.chained = False
        """Whether a handler that the user installed over ours has called ours."""

    @property
    def default(self) -> bool:
        """Whether the process ends when the signal is passed on."""
        return self._previous is signal.SIG_DFL

    @property
    def ours(self) -> bool:
        """Whether the signal comes to us first."""
        return self._installed and signal.getsignal(signal.SIGTERM) == self._handle

    def install(self) -> None:
        """Handle SIGTERM, unless it is ignored."""
        if not _in_main_thread():
            return
        previous = signal.getsignal(signal.SIGTERM)
        if previous is None or previous is signal.SIG_IGN:  # None: a handler of C code, which could not be called
            return
        self._previous = previous
        signal.signal(signal.SIGTERM, self._handle)
        self._installed = True
        other = signal.set_wakeup_fd(self._inbox.fileno(), warn_on_full_buffer=False)
        self._wakes = other == -1
        if not self._wakes:
            signal.set_wakeup_fd(other)  # an event loop's

    def remove(self) -> None:
        """Put back what was there, unless the user has put something else there."""
        if not (self._installed and _in_main_thread()):
            return
        if self.ours:
            signal.signal(signal.SIGTERM, self._previous)
        if self._wakes:
            other = signal.set_wakeup_fd(-1)
            if other not in {-1, self._inbox.fileno()}:
                signal.set_wakeup_fd(other)
        self._installed = self._wakes = False

    def pass_on(self) -> None:
        """Let happen what would have happened without us; called in the thread, once ours is done."""
        self._passing = True
        if self.default:
            # Only the main thread may use `signal.signal`, and it may be busy for ever.
            ctypes.CDLL(None).signal(int(signal.SIGTERM), ctypes.c_void_p(0))
        if self.default or not self.chained:
            os.kill(os.getpid(), signal.SIGTERM)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._passing or os.getpid() != self._pid:
            previous = self._previous
            self.remove()
            if callable(previous):
                previous(number, frame)
            elif previous == signal.SIG_DFL:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGTERM)
        elif not self.ours:
            self.chained = True
            self._inbox.put(TOLD)
            if callable(self._previous):
                self._previous(number, frame)
        else:
            self._inbox.put(TOLD)  # also where the interpreter was asked to: an event loop may have replaced that


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


_forking = threading.local()


def hold_back() -> None:
    """Before a fork: SIGTERM waits.

    One that met the child with our handler would be lost, since Python forgets the signals that a child got before
    it ran, and would wake the parent through the socket they share.
    """
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def let_through() -> None:
    """After a fork, in both, once the child has put back what was there before us."""
    if (mask := _forking.__dict__.pop("mask", None)) is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
