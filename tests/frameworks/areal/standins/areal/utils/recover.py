"""Checkpoints to recover from."""

from typing import Any

from areal import script


class RecoverHandler:
    """Finds what the test says."""

    def load(
        self,
        engine: Any,
        saver: Any,
        evaluator: Any,
        stats_logger: Any,
        dataloader: Any,
        inference_engine: Any = None,
        weight_update_meta: Any = None,
        inference_engine_update_from: str = "default",
    ) -> Any:
        """What there was to recover from; None if nothing."""
        return script.run("load", locals())

    def _load_checkpoint(
        self, engine: Any, name: str = "default", tokenizer: Any = None, base_model_path: str | None = None
    ) -> Any:
        return script.run("_load_checkpoint", locals())
