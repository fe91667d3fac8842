"""The settings as options of a command: one for each, with its help, made from `rlotel.config`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import click

from rlotel.config import SETTINGS, Config, resolve, variable_of
from rlotel.errors import SettingError

_VARIABLES = {setting.name: variable_of(setting) for setting in SETTINGS}


def with_settings(command: click.Command) -> click.Command:
    """Give a command an option for every setting; each comes as its text, None if it was not given."""
    command.params[:0] = options_of(_VARIABLES)
    return command


def options_of(names: Collection[str]) -> list[click.Option]:
    """The options of some settings."""
    return [_option(setting) for setting in SETTINGS if setting.name in names]


def settled(options: Mapping[str, str | None], environ: Mapping[str, str]) -> tuple[Config, dict[str, str]]:
    """The settings, and the environment that says the same.

    Args:
        options: settings that were given, by name; others that are None do not matter.
        environ: the environment of this process.

    Raises:
        SettingError: a setting cannot be used.
    """
    given = {_VARIABLES[name]: text for name, text in options.items() if text is not None}
    changed = {**environ, **given}
    return resolve({}, changed), changed


def named_as_given(error: SettingError, options: Mapping[str, str | None]) -> SettingError:
    """The error as the user of a command knows the setting: by its option, if it was given so."""
    for name, text in options.items():
        if text is not None and error.setting in {name, _VARIABLES[name]}:
            return SettingError(_flag(name), str(error).partition(": ")[2])
    return error


def _option(setting: dataclasses.Field[Any]) -> click.Option:
    notes = [_VARIABLES[setting.name]]
    if setting.default is not None:
        notes.insert(0, f"default: {str(setting.default).lower()}")
    return click.Option(
        [_flag(setting.name), setting.name],
        metavar="BOOLEAN" if isinstance(setting.default, bool) else "TEXT",
        help=f"{setting.metadata['help'].replace('`', '')} [{'; '.join(notes)}]",
    )


def _flag(setting: str) -> str:
    return "--" + setting.replace("_", "-")
