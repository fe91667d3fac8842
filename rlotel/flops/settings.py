"""Reads single values out of a Hugging Face config, whatever holds it: a mapping, an object or a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from rlotel.flops.architecture import UnknownArchitecture
from rlotel.flops.defaults import TEXT_DEFAULTS
from rlotel.flops.families import FAMILIES, Family


def load(config: object, name: str = "config.json") -> object:
    """Return the config itself, or the mapping in the file (or in the file `name` of the folder) it names.

    Raises:
        OSError: The file cannot be read.
        UnknownArchitecture: The file holds no JSON object.
    """
    if not isinstance(config, (str, os.PathLike)):
        return config
    path = Path(config)
    path = path / name if path.is_dir() else path
    try:
        loaded: object = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UnknownArchitecture(f"{path} is no JSON ({error}); give a Hugging Face {name}") from error
    if not isinstance(loaded, dict):
        raise UnknownArchitecture(f"{path} holds no JSON object; give a Hugging Face {name}")
    return loaded


def value_of(config: object, key: str) -> object:
    """Return what a mapping or an object has under `key`, None where it has nothing."""
    return config.get(key) if isinstance(config, Mapping) else getattr(config, key, None)


def _has(config: object, key: str) -> bool:
    return key in config if isinstance(config, Mapping) else hasattr(config, key)


class Settings:
    """The config of one text model, with its family's defaults behind it.

    `nested` is for the `text_config` of a larger model, which is written without its class's defaults.
    """

    def __init__(self, config: object, *, nested: bool) -> None:
        model_type = value_of(config, "model_type")
        if not isinstance(model_type, str) or model_type not in FAMILIES:
            raise UnknownArchitecture(
                f"no FLOP count for model_type {model_type!r}, so no MFU; known are {', '.join(sorted(FAMILIES))}"
            )
        self.model_type: str = model_type
        self.family: Family = FAMILIES[model_type]
        self._config = config
        self._defaults = {**(TEXT_DEFAULTS.get(model_type, {}) if nested else {}), **self.family.defaults}

    def raw(self, key: str) -> object:
        """The value as the config has it, an explicit null included, else the default, else None."""
        return value_of(self._config, key) if _has(self._config, key) else self._defaults.get(key)

    def flag(self, key: str) -> bool:
        """A truth value, False where unset."""
        return bool(self.raw(key))

    def size(self, *keys: str, default: int | None = None) -> int:
        """The first of `keys` that is set, else `default`.

        Raises:
            UnknownArchitecture: None is set and there is no default, or the value is no positive whole number.
        """
        found = next(((key, self.raw(key)) for key in keys if self.raw(key) is not None), None)
        if found is None:
            if default is None:
                raise UnknownArchitecture(
                    f"the {self.model_type} config has no {' or '.join(keys)}, so no FLOP count; give the config "
                    "in full (in transformers: AutoConfig.from_pretrained(...).to_dict())"
                )
            return default
        key, value = found
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise UnknownArchitecture(
                f"{key} of the {self.model_type} config is {value!r}, not a whole number above 0, so no MFU"
            )
        return value

    def count(self, key: str) -> int:
        """A number that may be 0 or unset, which is 0 as well.

        Raises:
            UnknownArchitecture: The value is no whole number of 0 or more.
        """
        return self.size(key) if self.raw(key) not in (None, 0) else 0
