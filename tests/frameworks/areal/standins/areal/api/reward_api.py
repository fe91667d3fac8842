"""Rewards, from a function that may take its time."""

from typing import Any


class AsyncRewardWrapper:
    """Asks the function."""

    def __init__(
        self, reward_fn: Any, timeout_seconds: float = 15, max_workers: int | None = None, max_retries: int = 3
    ) -> None:
        self.reward_fn = reward_fn

    async def __call__(self, *args: Any, **kwargs: Any) -> float:
        return float(await self.reward_fn(*args, **kwargs))
