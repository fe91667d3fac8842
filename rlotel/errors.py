"""What goes wrong inside rlotel stays inside rlotel: it is counted, logged once and never raised at the user.

The one exception is `SettingError`: what the user got wrong is raised at `instrument()`, before training.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


class _Log(logging.LoggerAdapter):  # type: ignore[type-arg]  # not generic in Python 3.10
    """The logger of rlotel; a handler or filter of the user's that raises loses the line and nothing else."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a line. Never raises."""
        with contextlib.suppress(Exception):
            super().log(level, msg, *args, **kwargs)


log = _Log(logging.getLogger("rlotel"), {})


class SettingError(ValueError):
    """A setting is wrong. Raised by `instrument()` only; the message names the setting and says what to do."""

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting}: {problem}")
        self.setting = setting


class Faults:
    """The errors of rlotel itself, in one process: contained, counted by place and logged once for each.

    `on_fault` is told of each one: the session counts it as a metric, the test fixture keeps it to raise it at
    the test's end. Safe in any thread.
    """

    def __init__(self, on_fault: Callable[[str, Exception], None] = lambda _place, _error: None) -> None:
        self.on_fault = on_fault
        self._logged: set[str] = set()
        self._inside = threading.local()

    def report(self, place: str, error: Exception) -> None:
        """Count one contained error; log it with its traceback if it is the first at this place."""
        if getattr(self._inside, "reporting", False):
            return  # a fault while counting a fault must not recurse
        self._inside.reporting = True
        try:
            if place not in self._logged:
                self._logged.add(place)
                log.warning(
                    "an error inside rlotel, in %s: training is not affected, some telemetry is missing",
                    place,
                    exc_info=error,
                )
            self.on_fault(place, error)
        except Exception:  # noqa: BLE001, S110 - whoever is told may fail as well; training goes on all the same
            pass
        finally:
            self._inside.reporting = False

    def contain(self, place: str) -> Containment:
        """Swallow and report any `Exception` of the block. KeyboardInterrupt and SystemExit pass."""
        return Containment(self, place)


class Containment:
    """A `with` block whose errors are reported, not raised. A class: a generator costs four times as much."""

    __slots__ = ("_faults", "_place")

    def __init__(self, faults: Faults, place: str) -> None:
        self._faults = faults
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._faults.report(self._place, error)
        return True


class HasFaults(Protocol):
    """Anything whose methods may be `contained`."""

    @property
    def faults(self) -> Faults:
        """Where its errors are reported."""


def contained(method: Function) -> Function:
    """Make a public method unable to raise, wrong arguments included; it then returns None."""
    place = method.__qualname__

    @functools.wraps(method)
    def call(self: HasFaults, *args: object, **kwargs: object) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - this is the place that contains
            self.faults.report(place, error)
            return None

    return cast(Function, call)
