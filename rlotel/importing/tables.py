"""Key tables as files: the meanings of `rlotel.adapters`, written in YAML or JSON."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlotel.errors import SettingError
from rlotel.logged.meanings import MAKERS, Meaning
from rlotel.logged.tables import Table

PARTS = ("keys", "step", "time", "evaluation", "system")


def read(path: Path) -> Table:
    """The table in a file.

    Raises:
        SettingError: it is none, or a meaning in it is none; the message names the key.
        OSError: it cannot be read.
    """
    said = _load(path)
    for part in said:
        if part not in PARTS:
            near = difflib.get_close_matches(str(part), PARTS, n=1)
            meant = f"; did you mean {near[0]}?" if near else f": a table has {', '.join(PARTS)}"
            raise SettingError(str(path), f"{part!r} is no part of a table{meant}")
    keys = said.get("keys")
    if not isinstance(keys, Mapping) or not keys:
        raise SettingError(str(path), "there are no keys in it: say `keys:`, and under it what each key means")
    for part in ("step", "time", "system"):
        if not isinstance(said.get(part, ""), str):
            raise SettingError(str(path), f"{part} is {said[part]!r}: use a text")
    evaluation = said.get("evaluation", ())
    if not isinstance(evaluation, (str, list, tuple)) or not all(isinstance(prefix, str) for prefix in evaluation):
        raise SettingError(str(path), f"evaluation is {evaluation!r}: use a prefix of keys, or a list of them")
    return Table.of(
        {str(key): _several(str(key), meant) for key, meant in keys.items()},
        step=said.get("step"),
        time=said.get("time"),
        evaluation=evaluation,
        system=said.get("system"),
    )


def _load(path: Path) -> Mapping[str, Any]:
    written = path.read_bytes()
    try:
        text = written.decode("utf-8-sig")
        if path.suffix == ".json":
            found = json.loads(text)
        else:
            import yaml

            found = yaml.safe_load(text)
    except ModuleNotFoundError as error:
        raise SettingError(
            str(path), "YAML needs pyyaml: pip install 'rlotel[import]', or write the table as .json"
        ) from error
    except Exception as error:  # each parser has its own
        raise SettingError(str(path), f"it cannot be understood: {error}") from error
    if not isinstance(found, Mapping):
        raise SettingError(str(path), "it is no table: say `keys:`, and under it what each key means")
    return found


def _several(key: str, meant: Any) -> list[str | Meaning]:
    return [_meaning(key, one) for one in (meant if isinstance(meant, list) else [meant])]


def _meaning(key: str, meant: Any) -> str | Meaning:
    if isinstance(meant, str):
        return meant
    named = f"table key {key!r}"
    how = [word for word in MAKERS if isinstance(meant, Mapping) and word in meant]
    if len(how) != 1:
        raise SettingError(
            named, f"{meant!r} has no meaning: use the name of a gauge, or {{{': …} or {'.join(MAKERS)}: …}}"
        )
    attributes = {str(name): value for name, value in meant.items() if name != how[0]}
    try:
        made: Meaning = MAKERS[how[0]](meant[how[0]], **attributes)
        return made
    except TypeError as error:
        raise SettingError(named, str(error)) from error
