"""Runs code elsewhere."""

from typing import Any

from areal import script


class DaytonaRunner:
    """Runs nothing."""

    def run(self, code: str, *, timeout: int | None = None, on_stdout: Any = None, on_stderr: Any = None) -> Any:
        """What the code printed."""
        return script.run("sandbox", {"code": code})
