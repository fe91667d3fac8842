"""`rlotel run`: runs a training command in which rlotel is switched on, without a line of code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NoReturn

import click

from rlotel import autostart, integrations
from rlotel.cli.options import named_as_given, settled, with_settings
from rlotel.endpoint import resolve_all as resolve_endpoints
from rlotel.errors import SettingError
from rlotel.handover import RUN_ID
from rlotel.identity import Identity

NOT_FOUND = 127
NOT_EXECUTABLE = 126
"""Exit codes as a shell gives them."""


@with_settings
@click.command(context_settings={"allow_interspersed_args": False}, options_metavar="[OPTIONS] --")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND [ARGS]...")
def run(command: tuple[str, ...], **options: str | None) -> None:
    """Run COMMAND with rlotel switched on in it and in every Python below it.

    \b
        rlotel run -- python train.py --lr 1e-6
        rlotel run --endpoint http://collector:4318 -- torchrun --nproc-per-node 8 train.py
        rlotel run --algorithm GRPO -- bash train.sh

    Process id, signals and exit code are the command's own. Each option is a setting and sets the variable named
    with it; without options those of the environment hold. A Python that is started with -E, -I or -S ignores
    its environment and is not reached: call rlotel.instrument() there.
    """  # noqa: D301 - click's mark for a paragraph that is not to be wrapped
    try:
        environ = environment(options, os.environ)
    except SettingError as error:
        raise named_as_given(error, options) from error
    execute(command, environ)


def environment(options: Mapping[str, str | None], environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the command: the settings, and what switches rlotel on in every Python below it.

    Args:
        options: settings that were given, by name.
        environ: the environment of this process.

    Raises:
        SettingError: a setting cannot be used; the message names its variable.
    """
    config, changed = settled(options, environ)
    resolve_endpoints(config, changed)
    integrations.chosen(config.frameworks, strict=False)  # what is installed only the command's own Python knows
    # One id for all that the command starts, also where it is a shell script.
    changed[RUN_ID] = Identity(config, changed).run_id
    return autostart.switched_on(changed) if config.enabled else changed


def execute(command: tuple[str, ...], environ: Mapping[str, str]) -> NoReturn:
    """Become the command: process id, signals and exit code are its own."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    try:
        os.execvpe(command[0], command, environ)  # noqa: S606 - no shell is meant
    except FileNotFoundError:
        _refuse(NOT_FOUND, f"there is no command {command[0]!r}{_hint(command[0])}")
    except PermissionError:
        _refuse(NOT_EXECUTABLE, f"{command[0]!r} may not be executed{_hint(command[0])}")
    except (OSError, ValueError) as error:
        _refuse(NOT_EXECUTABLE, f"{command[0]!r} cannot be executed: {error}{_hint(command[0])}")


def _hint(command: str) -> str:
    return f"; did you mean `rlotel run -- python {command}`?" if command.endswith(".py") else ""


def _refuse(code: int, problem: str) -> NoReturn:
    click.echo(f"Error: {problem}", err=True)
    sys.exit(code)
