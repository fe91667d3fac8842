"""`BasePPOExp`, which a user's experiment is one of."""

from typing import Any

from .. import script


class BasePPOExp:
    def __init__(self, cfg: Any) -> None:
        self.cfg = cfg

    def run(self) -> Any:
        return script.run("run", locals())
