"""Where the sources of dashboards and alerts lie, and reading them.

They are folders of the repository in a checkout, and part of the package in a wheel.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

_PACKAGE = Path(__file__).resolve().parent.parent


class SourceError(ValueError):
    """A source of a dashboard or an alert is wrong. The message names the file and says what to do."""


def folder(name: str) -> Path:
    """The folder `dashboards` or `alerts` with its sources: of the checkout, else of the installed package.

    Raises:
        SourceError: it is in neither place.
    """
    for place in (_PACKAGE.parent / name, _PACKAGE / "_data" / name):
        if any(place.glob("*.yaml")):
            return place
    raise SourceError(f"the folder {name}/ is missing beside {_PACKAGE}; install rlotel again")


def read(path: Path) -> dict[str, Any]:
    """One YAML source.

    Raises:
        SourceError: it is no YAML, or no mapping.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise SourceError(f"{path}: {error}") from error
    if not isinstance(content, dict):
        raise SourceError(f"{path}: should be a mapping at its top, and is {type(content).__name__}")
    return content


def refuse_unknown(entry: Mapping[str, Any], known: set[str], where: str) -> None:
    """Refuses keys that mean nothing.

    Raises:
        SourceError: there is one; the message lists those that there are.
    """
    if unknown := sorted(set(entry) - known):
        raise SourceError(
            f"{where}: {', '.join(unknown)} means nothing here; there are {', '.join(sorted(known))}"
        )
