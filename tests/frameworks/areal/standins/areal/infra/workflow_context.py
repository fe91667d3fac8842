"""What a workflow is run for."""

from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

_TRAINING = SimpleNamespace(is_eval=False)
_context: ContextVar[Any] = ContextVar("workflow")


def set(context: Any) -> None:  # noqa: A001 - it is called that
    """Say it."""
    _context.set(context)


def get() -> Any:
    """Ask for it."""
    return _context.get(_TRAINING)
