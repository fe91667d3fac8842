"""Saves weights where they are due."""

from typing import Any

from areal import script


class Saver:
    """Saves nothing."""

    def save(
        self,
        engine: Any,
        epoch: int,
        step: int,
        global_step: int,
        name: str = "default",
        tokenizer: Any = None,
        processor: Any = None,
        base_model_path: str | None = None,
    ) -> Any:
        """Save the weights of one model, if it is time to."""
        return script.run("save", locals())
