"""A supervised model, in a worker."""

from typing import Any

from areal import script


class LMEngine:
    """Around an engine."""

    def __init__(self, config: Any, engine: Any) -> None:
        self.config = config
        self.engine = engine

    def train_lm(self, data: Any) -> Any:
        """Train."""
        return script.run("train_lm", {"self": self, "data": data})
