"""What the stand-in functions do: a test says, by the name of each."""

from collections.abc import Mapping
from typing import Any


def run(name: str, arguments: Mapping[str, Any]) -> Any:
    """What a test puts its own in place of."""


def play(name: str, arguments: Mapping[str, Any]) -> Any:
    return run(name, arguments)
