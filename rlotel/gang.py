"""The ranks that one launcher (torchrun, accelerate, …) started beside each other, as the environment tells.

Every rank runs the same program, so each would take itself for the run. What names them all is the same in all.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path


def rank(environ: Mapping[str, str]) -> int:
    """This process's number among them; 0 where there are no others."""
    return number(environ, "RANK") if number(environ, "WORLD_SIZE") > 1 else 0


def name(environ: Mapping[str, str]) -> str | None:
    """What is the same in all ranks of a launch, and another in the next launch; None without other ranks.

    torchrun's own id where it has one. Else the rendezvous, and the launcher itself where all ranks have the same:
    on several nodes only the rendezvous is common, and a later launch at the same address has the same name.
    """
    if number(environ, "WORLD_SIZE") <= 1 or "RANK" not in environ:
        return None
    given = environ.get("TORCHELASTIC_RUN_ID", "")
    if given not in ("", "none"):
        return given
    rendezvous = f"{environ.get('MASTER_ADDR', '')}:{environ.get('MASTER_PORT', '')}"
    alone = environ.get("LOCAL_WORLD_SIZE") == environ.get("WORLD_SIZE")
    return _digest(f"{rendezvous} {process(os.getppid())}" if alone else rendezvous)


def number(environ: Mapping[str, str], name: str) -> int:
    """What a variable counts; 0 where it does not."""
    try:
        return max(0, int(environ.get(name, "")))
    except ValueError:  # more than 4300 digits are none to Python
        return 0


def process(pid: int) -> str:
    """A process of this machine, told from every other, whatever program it runs; empty where that is unknown."""
    try:
        started = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
    return f"{pid}-{started}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
