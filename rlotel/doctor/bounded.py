"""A call that ends in time, or is left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def bounded(function: Callable[[], Result], seconds: float) -> Result:
    """The function's result, computed in a daemon thread.

    For what has no timeout of its own: a look-up of a name, a driver.

    Raises:
        TimeoutError: it takes longer; it goes on without anyone waiting for it.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 - raised again below, where it is waited for
            errors.append(error)

    thread = threading.Thread(target=call, name="rlotel-doctor", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer within {seconds:.0f} s")
    return results[0]
