"""How a program ends, seen from inside: completed, failed or cancelled."""

from __future__ import annotations

import functools
import sys
import threading
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

COMPLETED, FAILED, CANCELLED, PREEMPTED = "completed", "failed", "cancelled", "preempted"

_INTERRUPTED = 130
"""The exit code that shells give to a program ended by Ctrl-C."""


class Ending:
    """Notes what ends the program, from `start` to `stop`.

    An uncaught exception is where the interpreter leaves it (`sys.last_value`), so no hook is needed that others
    might replace. An exit code can only be learnt by looking at `sys.exit`, which is called as ever.
    """

    def __init__(self) -> None:
        self._code: object = None
        self._before: BaseException | None = None
        self._original: Callable[..., NoReturn] | None = None
        self._watched: Callable[..., NoReturn] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._before = _last_uncaught()
        original = sys.exit

        @functools.wraps(original)
        def exit(*args: Any) -> NoReturn:  # noqa: A001 - it stands in for this one
            if threading.current_thread() is threading.main_thread():
                self._code = args[0] if args else None
            original(*args)

        self._original, self._watched = original, exit
        sys.exit = exit

    def stop(self) -> None:
        """Put `sys.exit` back, unless somebody else has replaced it meanwhile."""
        if self._original is not None and sys.exit is self._watched:
            sys.exit = self._original
        self._original = self._watched = None

    def state(self) -> str:
        """How it ended. To be asked as the interpreter exits, not before."""
        uncaught = _last_uncaught()
        if uncaught is not self._before and not hasattr(sys, "ps1"):  # where one types, an error is not the end
            return state_of(uncaught)
        return _state_of_code(self._code)


def state_of(error: BaseException | None) -> str:
    """How what raised `error` has ended; None if it did not raise."""
    if isinstance(error, SystemExit):
        return _state_of_code(error.code)
    if error is None or isinstance(error, GeneratorExit):
        return COMPLETED
    # What is neither is a KeyboardInterrupt, or the cancellation that an event loop makes of one.
    return FAILED if isinstance(error, Exception) else CANCELLED


def _state_of_code(code: object) -> str:
    if code is None or code == 0:
        return COMPLETED
    return CANCELLED if code == _INTERRUPTED else FAILED


def _last_uncaught() -> BaseException | None:
    last: BaseException | None = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return last
