"""Stand-in: as much of Ray as its integration looks for when it is imported."""

from typing import Any


def is_initialized() -> bool:
    return False


def init(*args: Any, **settings: Any) -> None:
    pass


def shutdown() -> None:
    pass


def kill(actor: Any) -> None:
    pass
