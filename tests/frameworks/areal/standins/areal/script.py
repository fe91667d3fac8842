"""What stand-in functions do: nothing, unless a test says so."""

from collections.abc import Mapping
from typing import Any


def now() -> float:
    """The clock."""
    return 0.0


def run(name: str, arguments: Mapping[str, Any]) -> Any:
    """Do what `name` is to do."""
    return None
