"""`Tracking`, which everything is logged with."""

from typing import Any

from .. import script


class Tracking:
    def log(self, data: dict[str, Any], step: int, commit: bool = False) -> None:
        script.run("log", locals())
