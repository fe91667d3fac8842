"""NVIDIA's management library (NVML) through nvidia-ml-py, where every way to fail has one of four meanings.

The binding raises errors that are not NVML's own (`NVMLLibraryMismatchError`, an `AttributeError` for what an old
binding lacks), and its errors cannot be hashed or compared; none of them leaves this module.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import sys
import threading
from enum import Enum
from typing import Any

LIBRARY, BINDING = "libnvidia-ml.so.1", "pynvml"
FORK_WAIT = 0.05
"""Seconds that a fork waits for a call that is under way: a child forked in the middle of one would inherit locked
locks of the driver's library."""


class Meaning(Enum):
    """What follows from a failure."""

    UNSUPPORTED = "unsupported"
    """This device, driver or binding cannot say it: never ask again."""
    LOST = "lost"
    """The device is gone until it is reset."""
    DOWN = "down"
    """The driver is gone, for all devices."""
    FAILED = "failed"
    """Not this time."""


_UNSUPPORTED = {3, 4, 13, 25, 26}
"""Not supported, no permission, function not found, argument version mismatch, deprecated."""
_LOST = {15, 16, 28}
"""GPU is lost, reset required, GPU not found."""
_DOWN = {1, 9, 12, 18}
"""Uninitialized, driver not loaded, library not found, driver and library of different versions."""
UNINITIALIZED, NOT_SUPPORTED, TIMEOUT, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND = 1, 3, 10, 12, 13


class CallFailed(Exception):
    """A call that gave no value."""

    def __init__(self, call: str, error_type: str, code: int | None, text: str = "") -> None:
        super().__init__(f"{call}: {text or error_type}")
        self.error_type = error_type
        """For the attribute `error.type`: the class of the binding's error, or NVML's number."""
        self.code = code
        self.meaning = _meaning(code)

    @classmethod
    def raised(cls, call: str, error: Exception) -> CallFailed:
        """What the binding raised, in our words."""
        code = getattr(error, "value", None)
        kind = type(error).__name__
        error_type = f"NVMLError_{code}" if kind == "NVMLError" else kind
        return cls(call, error_type, code if isinstance(code, int) else None, " ".join(str(error).split()))

    @classmethod
    def answered(cls, call: str, code: int) -> CallFailed:
        """One value of several came with an error's number."""
        return cls(call, f"NVMLError_{code}", code)


def _meaning(code: int | None) -> Meaning:
    # Without a code it is the binding's: an attribute, an argument or a version that it does not have.
    if code is None or code in _UNSUPPORTED:
        return Meaning.UNSUPPORTED
    if code in _LOST:
        return Meaning.LOST
    return Meaning.DOWN if code in _DOWN else Meaning.FAILED


def _need_driver() -> None:
    """Look for the driver's library before the binding is imported, which takes long."""
    if BINDING not in sys.modules:
        try:
            ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise CallFailed(
                "no NVIDIA driver", "NVMLError_LibraryNotFound", LIBRARY_NOT_FOUND, str(error)
            ) from None


class Nvml:
    """The library, from `open` to `close`. Reads only: it never makes a CUDA context and never resets anything."""

    def __init__(self) -> None:
        self._module: Any = None
        self._initialized = False

    def open(self) -> None:
        """Load the binding and the driver's library, and initialize it.

        Raises:
            ModuleNotFoundError: nvidia-ml-py is not installed.
            CallFailed: there is no driver, or it does not answer.
        """
        if self._module is None:
            _need_driver()
            module = importlib.import_module(BINDING)
            if not hasattr(module, "nvmlInit"):
                raise ModuleNotFoundError("another package is in the place of nvidia-ml-py", name=BINDING)
            self._module = module
        self.call("nvmlInit")
        self._initialized = True

    def close(self) -> None:
        """Give up our use of the library; others in this process keep theirs, which the library only counts."""
        if self._initialized:
            self._initialized = False
            with contextlib.suppress(CallFailed):  # it was gone already
                self.call("nvmlShutdown")

    def call(self, name: str, *args: object, **kwargs: object) -> Any:
        """Call a function of the binding by name, or make one of its structures.

        Raises:
            CallFailed: whatever went wrong.
        """
        with _under_way.lock:
            try:
                return getattr(self._module, name)(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - the binding has several families of errors
                failure = CallFailed.raised(name, error)
                if failure.code == UNINITIALIZED:
                    self._initialized = False
                raise failure from None


def text(value: str | bytes) -> str:
    """A value that is text, which old bindings give as bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


class _UnderWay:
    """Keeps forks and calls apart."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._held = False

    def before_fork(self) -> None:
        self._held = self.lock.acquire(timeout=FORK_WAIT)

    def after_fork_in_parent(self) -> None:
        if self._held:
            self._held = False
            self.lock.release()

    def after_fork_in_child(self) -> None:
        self.lock = threading.RLock()
        self._held = False


_under_way = _UnderWay()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _under_way.before_fork(),
        after_in_parent=lambda: _under_way.after_fork_in_parent(),
        after_in_child=lambda: _under_way.after_fork_in_child(),
    )
