"""Whether something is due."""

from typing import Any

from areal import script


class EpochStepTimeFreqCtl:
    """Asks the test."""

    def check(self, epochs: int, steps: int) -> Any:
        """Whether it is due."""
        return script.run("check", {"epochs": epochs, "steps": steps})
