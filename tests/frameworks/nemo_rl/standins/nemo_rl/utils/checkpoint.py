"""`CheckpointManager`: a checkpoint is a folder that gets its name once it is complete."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from nemo_rl import script


class CheckpointManager:
    def __init__(self, config: Any) -> None:
        self.config = config

    def _rename_checkpoint(self, checkpoint_path: str | Path) -> None:
        script.run("_rename_checkpoint", locals())

    def finalize_checkpoint(self, checkpoint_path: str | Path) -> None:
        script.run("finalize_checkpoint", locals())

    def begin_finalization(self, checkpoint_path: str | Path, wait_fn: Callable[[], None] | None = None) -> None:
        script.run("begin_finalization", locals())

    def finalize_pending(self) -> None:
        script.run("finalize_pending", locals())
