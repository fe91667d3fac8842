"""The policy, in a worker."""

from typing import Any

from areal import script


class PPOActor:
    """Around an engine."""

    def __init__(self, config: Any, engine: Any) -> None:
        self.config = config
        self.engine = engine

    def compute_logp(self, data: Any) -> Any:
        """How likely it all was."""
        return script.run("compute_logp", {"self": self, "data": data})

    def ppo_update(self, data: Any) -> Any:
        """Train."""
        return script.run("ppo_update", {"self": self, "data": data})
