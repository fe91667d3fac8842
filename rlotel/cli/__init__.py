"""The command `rlotel`: a group whose commands are imported only when they are called."""

from __future__ import annotations

import difflib
import importlib
import io
import sys
from dataclasses import dataclass
from typing import Any

import click

from rlotel.errors import SettingError
from rlotel.version import __version__


@dataclass(frozen=True)
class _Entry:
    """A command, without importing it. Its module is `rlotel.cli.<name>` and has the command under that name."""

    help: str
    extra: str | None = None
    """The extra of rlotel's that brings what the command needs."""
    module: str | None = None
    """Its module and function, where its name is a word of Python's."""


COMMANDS = {
    "demo": _Entry("Train a small policy here and watch it live: nothing else needed.", "demo"),
    "run": _Entry("Run a training command with rlotel switched on; no code changes."),
    "import": _Entry("Send what a finished run logged, with the times it had.", module="import_runs"),
    "doctor": _Entry("Say what is installed, what will be sent, and whether it arrives."),
    "dashboards": _Entry("Dashboards for Cloud Monitoring and Grafana: write, check, apply.", "dashboards"),
    "alerts": _Entry("Alerts for Cloud Monitoring and Prometheus: write, check, apply.", "dashboards"),
    "semconv": _Entry("Look up names of the semantic model; check a capture against it."),
    "gpu": _Entry("Show this node's GPUs as they are read: use, memory, power, health.", "gpu"),
    "mfu": _Entry("Explain the MFU of a model, a GPU and a speed, term by term."),
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        entry = COMMANDS.get(name)
        if entry is None:
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            if near:
                raise click.UsageError(f"there is no command {name!r}; did you mean `rlotel {near[0]}`?")
            return None
        try:
            module = importlib.import_module(f"rlotel.cli.{entry.module or name}")
        except ModuleNotFoundError as error:
            if entry.extra is None or str(error.name).startswith("rlotel"):
                raise
            raise click.ClickException(
                f"`rlotel {name}` needs {error.name}, which is not installed: pip install 'rlotel[{entry.extra}]'"
            ) from error
        command: click.Command = getattr(module, entry.module or name)
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # not every terminal knows the characters that we print
        try:
            return super().invoke(ctx)
        except SettingError as error:
            # Without the context: how the command is called was right.
            raise click.UsageError(str(error)) from error


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="In code it is one line before training: import rlotel; rlotel.instrument()",
)
@click.version_option(__version__, package_name="rlotel", message="%(package)s %(version)s")
def main() -> None:
    """OpenTelemetry for reinforcement-learning training."""
