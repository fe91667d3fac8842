"""The trainer beside which rollouts are made."""

from typing import Any

from . import script
from .trainer import RayPPOTrainer


class FullyAsyncRayPPOTrainer(RayPPOTrainer):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    async def train(self) -> Any:
        return script.run("train", locals())
