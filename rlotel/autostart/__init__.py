"""Starting rlotel in a Python whose program says nothing of it.

Two ways lead here, each where `RLOTEL_ENABLED` says so. A Python that has rlotel installed runs one line of it,
`zz-rlotel.pth`, before any program. Elsewhere this folder goes onto `PYTHONPATH`; every Python below then loads
the `sitecustomize` in it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlotel.handover import ATTEMPT, ENABLED

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from rlotel.config import Protocol

_COMMANDS = frozenset({"rlotel", "ray"})
_RAY_MODULE = re.compile(r"[/\\]ray[/\\](_private|autoscaler|dashboard|scripts)[/\\]")

FOLDER = str(Path(__file__).resolve().parent)
PTH = "zz-rlotel.pth"
"""The last in the alphabet: what other packages put onto the path is there when it runs."""


def switched_on(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which every Python starts rlotel: for a command, a container or a worker."""
    path = environ.get("PYTHONPATH", "")
    if path.split(os.pathsep)[0] != FOLDER:
        path = f"{FOLDER}{os.pathsep}{path}" if path else FOLDER
    return {**environ, ENABLED: "true", "PYTHONPATH": path}


def start(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    protocol: Protocol | None = None,
) -> None:
    """Do as `rlotel.instrument()` does, but say in one line what is wrong instead of raising it.

    The program has not begun yet and knows nothing of rlotel, so it runs in any case.
    """
    if not _of_a_program(sys.orig_argv[1:], os.environ):
        return
    try:
        from rlotel.session import instrument

        instrument(protocol=protocol, tracer_provider=tracer_provider, meter_provider=meter_provider)
    except Exception as error:  # noqa: BLE001 - nothing of ours may keep the program from running
        say(error)


def say(error: Exception) -> None:
    """One line on standard error: that there is no telemetry from this process, and why."""
    if sys.stderr is not None:
        what = " ".join(f"{error}".split()) or type(error).__name__
        sys.stderr.write(f"rlotel is not started in process {os.getpid()}: {what}\n")


def _of_a_program(arguments: Iterable[str], environ: Mapping[str, str]) -> bool:
    """Whether this is a program of the user's: neither rlotel's own command nor one that only keeps books."""
    words = list(arguments)
    script = Path(next((word for word in words if not word.startswith("-")), "")).stem
    if script in _COMMANDS or any("multiprocessing.resource_tracker" in word for word in words):
        return False
    file = next((word for word in words if word.endswith(".py")), "")
    if _RAY_MODULE.search(file) or (words[:1] == ["-m"] and words[1].startswith("ray.")):
        # Of all that Ray itself runs only workers are the user's, and of these only those of a run that told them.
        return file.endswith("default_worker.py") and ATTEMPT in environ
    return True
