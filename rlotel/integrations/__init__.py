"""The frameworks rlotel knows. Each is one file of tables and observers, and one line here."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from rlotel.errors import Faults, SettingError
from rlotel.patching import Patches
from rlotel.recorder import Recorder


@dataclass(frozen=True)
class Known:
    """A framework that can be instrumented: `module` has a function `connect(patches, recorder)`."""

    module: str
    package: str | None
    """What must be importable for it to be here; None if it always is."""

    @property
    def present(self) -> bool:
        """Whether the framework is installed. Looks for it without importing it."""
        return self.package is None or importlib.util.find_spec(self.package) is not None


KNOWN: Mapping[str, Known] = {
    "threads": Known("rlotel.integrations.threads", None),
    "verl": Known("rlotel.integrations.verl", "verl"),
}


def chosen(frameworks: tuple[str, ...] | Literal["auto"]) -> tuple[str, ...]:
    """The names to connect.

    Raises:
        SettingError: a name is unknown, or its framework is not installed.
    """
    if frameworks == "auto":
        return tuple(name for name, known in KNOWN.items() if known.present)
    for name in frameworks:
        if name not in KNOWN:
            raise SettingError(
                "frameworks", f"there is no integration named {name!r}; there are {', '.join(KNOWN)}"
            )
        if not KNOWN[name].present:
            raise SettingError(
                "frameworks", f"{name} is asked for, but the package {KNOWN[name].package} is not installed here"
            )
    return frameworks


def connect(names: Iterable[str], patches: Patches, recorder: Recorder, faults: Faults) -> None:
    """Let each named integration watch its framework. One that fails does not keep the others from it."""
    for name in names:
        with faults.contain(f"integration {name}"):
            importlib.import_module(KNOWN[name].module).connect(patches, recorder)
