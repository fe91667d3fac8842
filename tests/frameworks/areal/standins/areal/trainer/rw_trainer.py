"""A trainer."""

from typing import Any

from areal import script


class RWTrainer:
    """Trains as the test says."""

    def __init__(self, config: Any, train_dataset: Any = None, valid_dataset: Any = None) -> None:
        self.config = config
        self.recover_info: Any = None
        script.run("made", {"self": self})

    def train(self) -> Any:
        """Train."""
        return script.run("train", {"self": self})
