"""Stands in for skyrl-gym: environments, made by name."""

from collections.abc import Callable
from typing import Any

creators: dict[str, Callable[..., Any]] = {}


def register(id: str, entry_point: Any = None, kwargs: dict[str, Any] | None = None) -> None:  # noqa: A002
    creators[id] = entry_point


def make(id: str, **kwargs: Any) -> Any:  # noqa: A002
    return creators[id](**kwargs)
