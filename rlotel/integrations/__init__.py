"""The frameworks rlotel knows. Each is a module or package of tables and observers, and one line here."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Literal

from rlotel.errors import Faults, SettingError
from rlotel.modules import importable
from rlotel.patching import Patches
from rlotel.recorder import Recorder


@dataclass(frozen=True)
class Known:
    """A framework that can be instrumented: `module` has a function `connect(patches, recorder)`."""

    module: str
    package: str | None
    """What must be importable for it to be here; None if it always is."""
    needs: tuple[str, ...] = ()
    """The integrations without which this one would not see all of a run."""
    formerly: str | None = None
    """What the package was called in older releases."""

    @property
    def present(self) -> bool:
        """Whether the framework can be imported, from the working directory too; it is not imported here.

        Under `rlotel run` this is asked before Python has put the program's own folder on its path.
        """
        return self.package is None or any(
            importable(name) or PathFinder.find_spec(name, [str(Path.cwd())]) is not None
            for name in (self.package, self.formerly)
            if name is not None
        )


KNOWN: Mapping[str, Known] = {
    "areal": Known("rlotel.integrations.areal", "areal", needs=("ray",)),
    "nemo_rl": Known("rlotel.integrations.nemo_rl", "nemo_rl", needs=("ray",)),
    "openrlhf": Known("rlotel.integrations.openrlhf", "openrlhf", needs=("ray",)),
    "threads": Known("rlotel.integrations.threads", None),
    "ray": Known("rlotel.integrations.ray", "ray"),
    "skyrl": Known("rlotel.integrations.skyrl", "skyrl", needs=("ray",), formerly="skyrl_train"),
    "torchrun": Known("rlotel.integrations.torchrun", "torch"),
    "trl": Known("rlotel.integrations.trl", "trl", needs=("torchrun",)),
    "rllib": Known("rlotel.integrations.rllib", "ray", needs=("ray",)),
    "verl": Known("rlotel.integrations.verl", "verl", needs=("ray",)),
    "rsl_rl": Known("rlotel.integrations.rsl_rl", "rsl_rl"),
    "stable_baselines3": Known("rlotel.integrations.stable_baselines3", "stable_baselines3"),
    "skrl": Known("rlotel.integrations.skrl", "skrl"),
}


def chosen(frameworks: tuple[str, ...] | Literal["auto"], *, strict: bool = True) -> tuple[str, ...]:
    """The names to connect: those asked for, what they need, and the standard library's; or automatically all.

    An integration of what is never imported does nothing.

    Args:
        frameworks: the names asked for.
        strict: whether those must be installed that are asked for by name.

    Raises:
        SettingError: a name is unknown, or its framework is not installed.
    """
    if frameworks == "auto":
        return tuple(KNOWN)
    for name in frameworks:
        if name not in KNOWN:
            raise SettingError(
                "frameworks", f"there is no integration named {name!r}; there are {', '.join(KNOWN)}"
            )
        if strict and not KNOWN[name].present:
            raise SettingError(
                "frameworks", f"{name} is asked for, but the package {KNOWN[name].package} is not installed here"
            )
    wanted = {*frameworks, *(need for name in frameworks for need in KNOWN[name].needs)}
    return tuple(name for name, known in KNOWN.items() if name in wanted or known.package is None)


def connect(names: Iterable[str], patches: Patches, recorder: Recorder, faults: Faults) -> None:
    """Let each named integration watch its framework, as that is about to be imported.

    One that fails does not keep the others from it, and one of what is never imported is not even loaded.
    """
    done: set[str] = set()
    for name in names:
        known, connected = KNOWN[name], partial(_connect, name, done, patches, recorder, faults)
        if known.package is None:
            connected()
        else:
            patches.before_import(known.package, connected)
        if known.formerly is not None:
            patches.before_import(known.formerly, connected)


def _connect(name: str, done: set[str], patches: Patches, recorder: Recorder, faults: Faults) -> None:
    if name in done:
        return
    done.add(name)
    with faults.contain(f"integration {name}"):
        importlib.import_module(KNOWN[name].module).connect(patches, recorder)
