"""How a program ends, seen from inside: completed, failed or cancelled."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from rlotel.semconv.attributes import RunState

if TYPE_CHECKING:
    from rlotel.patching import Call, Patches

_INTERRUPTED = 130
"""The exit code that shells give to a program ended by Ctrl-C."""


class Ending:
    """Notes what ends the program, once it is started.

    An uncaught exception is where the interpreter leaves it (`sys.last_value`), so no hook is needed that others
    might replace. An exit code can only be learnt by watching `sys.exit`.
    """

    def __init__(self) -> None:
        self._code: object = None
        self._before: BaseException | None = None

    def start(self, patches: Patches) -> None:
        """Begin to look."""
        self._before = _last_uncaught()
        patches.watch("sys:exit", before=self._exits)

    def state(self) -> RunState:
        """How it ended. To be asked as the interpreter exits, not before."""
        uncaught = _last_uncaught()
        if uncaught is not self._before and not hasattr(sys, "ps1"):  # where one types, an error is not the end
            return state_of(uncaught)
        return _state_of_code(self._code)

    def _exits(self, call: Call) -> None:
        if threading.current_thread() is threading.main_thread():  # elsewhere it ends a thread only
            self._code = call.args[0] if call.args else None


def state_of(error: BaseException | None) -> RunState:
    """How what raised `error` has ended; None if it did not raise."""
    if isinstance(error, SystemExit):
        return _state_of_code(error.code)
    if error is None or isinstance(error, GeneratorExit):
        return RunState.COMPLETED
    # What is neither is a KeyboardInterrupt, or the cancellation that an event loop makes of one.
    return RunState.FAILED if isinstance(error, Exception) else RunState.CANCELLED


def _state_of_code(code: object) -> RunState:
    if code is None or code == 0:
        return RunState.COMPLETED
    return RunState.CANCELLED if code == _INTERRUPTED else RunState.FAILED


def _last_uncaught() -> BaseException | None:
    last: BaseException | None = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return last
