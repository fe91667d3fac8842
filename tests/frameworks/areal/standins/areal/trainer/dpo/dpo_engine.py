"""A model that learns from preferences, in a worker."""

from typing import Any

from areal import script


class DPOEngine:
    """Around an engine."""

    def __init__(self, config: Any, engine: Any) -> None:
        self.config = config
        self.engine = engine

    def train_dpo(self, data: Any) -> Any:
        """Train."""
        return script.run("train_dpo", {"self": self, "data": data})
