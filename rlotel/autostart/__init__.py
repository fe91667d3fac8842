"""Starting rlotel in a Python whose program says nothing of it.

This folder goes onto `PYTHONPATH`; every Python below then loads the `sitecustomize` in it before its program.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

FOLDER = str(Path(__file__).resolve().parent)
SWITCH = "RLOTEL_ENABLED"


def switched_on(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which every Python starts rlotel: for a command, a container or a worker."""
    path = environ.get("PYTHONPATH", "")
    if path.split(os.pathsep)[0] != FOLDER:
        path = f"{FOLDER}{os.pathsep}{path}" if path else FOLDER
    return {**environ, SWITCH: "true", "PYTHONPATH": path}


def start(tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None) -> None:
    """Do as `rlotel.instrument()` does, but say in one line what is wrong instead of raising it.

    The program has not begun yet and knows nothing of rlotel, so it runs in any case.
    """
    if not _of_a_program(sys.orig_argv[1:]):
        return
    try:
        from rlotel.session import instrument

        instrument(tracer_provider=tracer_provider, meter_provider=meter_provider)
    except Exception as error:  # noqa: BLE001 - nothing of ours may keep the program from running
        say(error)


def say(error: Exception) -> None:
    """One line on standard error: that there is no telemetry from this process, and why."""
    if sys.stderr is not None:
        what = " ".join(f"{error}".split()) or type(error).__name__
        sys.stderr.write(f"rlotel is not started in process {os.getpid()}: {what}\n")


def _of_a_program(arguments: Iterable[str]) -> bool:
    """Whether this is a program of the user's: neither rlotel's own command nor multiprocessing's book-keeper."""
    words = list(arguments)
    script = Path(words[0]).stem if words else ""
    return script != "rlotel" and not any("multiprocessing.resource_tracker" in word for word in words)
