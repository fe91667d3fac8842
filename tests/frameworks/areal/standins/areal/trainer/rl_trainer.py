"""A trainer."""

from typing import Any

from areal import script


class PPOTrainer:
    """Trains as the test says."""

    def __init__(self, config: Any, train_dataset: Any = None, valid_dataset: Any = None) -> None:
        self.config = config
        self.recover_info: Any = None
        script.run("made", {"self": self})

    def train(
        self,
        workflow: Any = None,
        eval_workflow: Any = None,
        workflow_kwargs: Any = None,
        eval_workflow_kwargs: Any = None,
        dynamic_filter_fn: Any = None,
        total_epochs: int | None = None,
    ) -> Any:
        """Train."""
        return script.run("train", {"self": self})
