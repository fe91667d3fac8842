"""A reward model, in a worker."""

from typing import Any

from areal import script


class RWEngine:
    """Around an engine."""

    def __init__(self, config: Any, engine: Any) -> None:
        self.config = config
        self.engine = engine

    def train_rw(self, data: Any) -> Any:
        """Train."""
        return script.run("train_rw", {"self": self, "data": data})
