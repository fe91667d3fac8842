"""Verifies answers in a locked-down Python process of its own.

The process runs :mod:`rlotel.demo.verifier` in an isolated interpreter without site packages or environment,
and limits itself: memory, CPU time a batch, no new files or processes. It starts once and takes a batch as
one line of JSON, so a batch costs milliseconds. This contains a crash, a hang or a hungry answer; it is no
boundary against hostile code, which needs a sandbox of the operating system (gVisor, a virtual machine).
"""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from rlotel.demo.policy import Rollouts

_VERIFIER = Path(__file__).with_name("verifier.py")
# An interpreter built against a shared library may need these to start at all.
_KEPT_ENVIRONMENT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_EXIT_SECONDS = 1.0
_CHUNK_BYTES = 65536

_Process = subprocess.Popen[bytes]


class SandboxError(RuntimeError):
    """The sandbox could not score a batch."""


class SandboxTimeout(SandboxError, TimeoutError):
    """The sandbox took longer than its timeout; the next batch gets a new process."""


class _Died(Exception):
    pass


class Sandbox:
    """One verifying process, started at the first batch and again whenever it has died.

    Use it as a context manager or call :meth:`close`; a forgotten one is stopped when it is collected or the
    interpreter exits. One thread at a time may use it.
    """

    def __init__(self, *, timeout: float = 10.0) -> None:
        """Sets the seconds of wall time that a batch may take."""
        self.timeout = timeout
        self._process: _Process | None = None
        self._stop: weakref.finalize[[_Process], Sandbox] | None = None
        self._starts = 0
        self._closed = False

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The verifying process, None while there is none."""
        return None if self._process is None else self._process.pid

    @property
    def restarts(self) -> int:
        """How often a process had to be replaced."""
        return max(0, self._starts - 1)

    def verify(self, rollouts: Rollouts) -> NDArray[np.float64]:
        """The reward of each completion, 0 to 1.

        Raises:
            SandboxTimeout: The batch took longer than the timeout.
            SandboxError: The process died twice over the batch, or the sandbox is closed.
        """
        return self.score(rollouts.texts())

    def score(self, answers: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """The reward of each (prompt, completion) text; raises what :meth:`verify` raises."""
        if self._closed:
            raise SandboxError("the sandbox is closed: make a new one")
        request = json.dumps({"answers": answers}).encode() + b"\n"
        deadline = time.monotonic() + self.timeout
        try:
            reply = self._ask(request, deadline)
        except _Died:
            # Most deaths come from outside (out of memory, a signal), so the same batch gets a second try.
            try:
                reply = self._ask(request, deadline)
            except _Died:
                raise SandboxError(
                    f"the verifying process died twice over one batch of {len(answers)} answers:"
                    f" run `{sys.executable} -I -S {_VERIFIER}` by hand to see why"
                ) from None
        return _rewards(reply, len(answers))

    def close(self) -> None:
        """Stops the process and waits for it, about a second at most; a second call does nothing."""
        self._closed = True
        self._discard()

    def _ask(self, request: bytes, deadline: float) -> bytes:
        process = self._running()
        try:
            return _exchange(process, request, deadline, self.timeout)
        except BaseException:
            # Whatever ended the exchange, KeyboardInterrupt included, half an answer may still be in the
            # pipe, and the next batch must not read it as its own.
            process.kill()
            self._discard()
            raise

    def _running(self) -> _Process:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_VERIFIER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                env={name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ},
                # Ctrl-C in the terminal is the trainer's to handle.
                start_new_session=True,
            )
            self._stop = weakref.finalize(self, _stop, self._process)
            self._starts += 1
        return self._process

    def _discard(self) -> None:
        if self._stop is not None:
            self._stop()
        self._process = self._stop = None


def _exchange(process: _Process, request: bytes, deadline: float, timeout: float) -> bytes:
    """Sends a line and receives one, never waiting beyond the deadline for either."""
    assert process.stdin is not None
    assert process.stdout is not None
    os.set_blocking(process.stdin.fileno(), False)
    pending, received = memoryview(request), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdin, selectors.EVENT_WRITE)
        selector.register(process.stdout, selectors.EVENT_READ)
        while not received.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0:
                raise SandboxTimeout(f"no rewards within {timeout:g} s: give Sandbox a longer timeout")
            for key, _ in selector.select(left):
                if key.fileobj is process.stdin:
                    pending = pending[_send(process.stdin.fileno(), pending) :]
                    if not pending:
                        selector.unregister(process.stdin)
                else:
                    chunk = os.read(process.stdout.fileno(), _CHUNK_BYTES)
                    if not chunk:
                        raise _Died
                    received += chunk
    return bytes(received)


def _send(descriptor: int, data: memoryview) -> int:
    try:
        return os.write(descriptor, data)
    except BrokenPipeError:
        raise _Died from None


def _rewards(reply: bytes, count: int) -> NDArray[np.float64]:
    # The process is not trusted to answer well either.
    try:
        rewards = np.asarray(json.loads(reply)["rewards"], dtype=np.float64)
    except (ValueError, TypeError, KeyError):
        raise SandboxError("the verifying process sent something other than rewards") from None
    if rewards.shape != (count,) or not ((rewards >= 0) & (rewards <= 1)).all():
        raise SandboxError(f"the verifying process sent other than {count} rewards from 0 to 1")
    return rewards


def _stop(process: _Process) -> None:
    """Ends the process by closing its input, else by force; leaves no zombie."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(_EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_EXIT_SECONDS)
    process.stdout.close()
