"""`Logger`: where NeMo RL's loops send their metrics."""

from typing import Any


class Logger:
    def __init__(self, cfg: Any) -> None:
        self.loggers: list[Any] = []

    def log_metrics(
        self,
        metrics: dict[str, Any],
        step: int,
        prefix: str | None = "",
        step_metric: str | None = None,
        step_finished: bool = False,
    ) -> None:
        for logger in self.loggers:
            logger.log_metrics(metrics, step, prefix, step_metric, step_finished)
