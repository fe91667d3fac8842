"""What the stand-ins do when they are called: a test says so."""

import time
from collections.abc import Callable, Mapping
from typing import Any

now: Callable[[], float] = time.perf_counter
"""What timers measure with."""


def nothing(name: str, arguments: Mapping[str, Any]) -> Any:
    """Do nothing and return None."""


run: Callable[[str, Mapping[str, Any]], Any] = nothing
"""Called with the name and arguments of each stand-in function; what it returns is returned."""
