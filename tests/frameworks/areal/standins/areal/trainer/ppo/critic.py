"""The critic, in a worker."""

from typing import Any

from areal import script


class PPOCritic:
    """Around an engine."""

    def __init__(self, config: Any, engine: Any) -> None:
        self.config = config
        self.engine = engine

    def compute_values(self, data: Any) -> Any:
        """What it is worth."""
        return script.run("compute_values", {"self": self, "data": data})

    def ppo_update(self, data: Any) -> Any:
        """Train."""
        return script.run("ppo_update", {"self": self, "data": data})
