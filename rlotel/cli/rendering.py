"""What `rlotel dashboards` and `rlotel alerts` share: the options of rendering, and writing what was made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from rlotel.render import SourceError, files, spelling, windows
from rlotel.render.options import Options
from rlotel.render.selection import TARGET, Matcher
from rlotel.render.windows import Windows
from rlotel.semconv import attributes

Command = TypeVar("Command", bound=Callable[..., Any])


def _pairs(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [text.partition("=") for text in value]
    for text, (name, _, given) in zip(value, pairs, strict=True):
        if not (name and given):
            raise click.BadParameter(f"{text!r}: write it as NAME=VALUE", ctx, param)
    return tuple((name, given) for name, _, given in pairs)


@dataclass(frozen=True)
class Chosen:
    """What the options of a command say about rendering."""

    options: Options
    thresholds: dict[str, str]
    sources: Path | None


def choices(command: Command) -> Command:
    """Adds the options that change what is rendered; the command gets them as `chosen`."""

    @functools.wraps(command)
    def wrapper(
        loop_time: str | None,
        selectors: tuple[tuple[str, str], ...],
        thresholds: tuple[tuple[str, str], ...],
        runbooks: str | None,
        sources: Path | None,
        **others: Any,
    ) -> Any:
        chosen = Chosen(options(loop_time, selectors, runbooks), dict(thresholds), sources)
        return command(chosen=chosen, **others)

    for option in (
        click.option(
            "--loop-time", metavar="DURATION", help="How long an iteration takes, if over 15m: widens windows."
        ),
        click.option(
            "--select",
            "selectors",
            multiple=True,
            metavar="NAME=VALUE",
            callback=_pairs,
            help="Only points with this label; repeat it.",
        ),
        click.option(
            "--threshold",
            "thresholds",
            multiple=True,
            metavar="NAME=VALUE",
            callback=_pairs,
            help="Another value for a threshold of an alert.",
        ),
        click.option("--runbooks", metavar="URL", help="Where you publish the runbooks, to link to them."),
        click.option(
            "--sources",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            help="A folder with sources of your own.",
        ),
    ):
        wrapper = option(wrapper)
    return cast("Command", wrapper)


def spellings(command: Command) -> Command:
    """Adds the option that says how a Prometheus spells names."""
    described = "; ".join(f"{one.name}: {one.meaning}" for one in spelling.ALL.values())
    return click.option(
        "--spelling",
        "spelled",
        multiple=True,
        type=click.Choice(list(spelling.ALL)),
        default=[one.name for one in files.PROMETHEUS],
        help=f"How your Prometheus writes names. {described}.",
    )(command)


def written_to(folder: str) -> Callable[[Command], Command]:
    """Adds the options that say where files are written, and whether; `deliver` does it."""

    def add(command: Command) -> Command:
        check = click.option(
            "--check", is_flag=True, help="Write nothing; list what is stale, and end with 1 if something is."
        )
        out = click.option(
            "--out",
            type=click.Path(path_type=Path),
            default=Path(folder),
            show_default=True,
            help="The folder to write to.",
        )
        return out(check(command))

    return add


def options(loop_time: str | None, selectors: tuple[tuple[str, str], ...], runbooks: str | None) -> Options:
    """The options of rendering, from those of the command line.

    Raises:
        click.BadParameter: the duration is none, or a label is not on every metric.
    """
    known = {*(attribute.name for attribute in attributes.IDENTITY), *TARGET}
    if unknown := sorted({label for label, _ in selectors} - known):
        raise click.BadParameter(
            f"not every metric has {', '.join(unknown)}; there are {', '.join(sorted(known))}",
            param_hint="--select",
        )
    matchers: tuple[Matcher, ...] = tuple((label, "=", value) for label, value in selectors)
    link = None if runbooks is None else runbooks.rstrip("/")
    if loop_time is None:
        return Options(matchers=matchers, runbooks=link)
    try:
        return Options(Windows(windows.seconds(loop_time)), matchers, link)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--loop-time") from error


def deliver(made: dict[str, str], out: Path, check: bool) -> None:
    """Writes files below a folder, or with `check` only says which are stale, and then ends with 1."""
    changed = files.stale(made, out) if check else files.write(made, out)
    for path in changed:
        click.echo(f"{'stale' if check else 'wrote' if path in made else 'removed'} {out / path}")
    if check and changed:
        click.get_current_context().exit(1)
    if not changed:
        click.echo(f"{out}: {len(made)} files, all fresh")


def report(found: dict[str, list[str]]) -> None:
    """Prints what is wrong with each file, and ends with 1 if anything is."""
    wrong = [f"{path}: {problem}" for path, problems in found.items() for problem in problems]
    for line in wrong:
        click.echo(line)
    if wrong:
        click.get_current_context().exit(1)
    click.echo(f"{len(found)} files, nothing wrong")


class Sourced(click.Group):
    """A group whose commands say what is wrong with a source, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except SourceError as error:
            raise click.ClickException(str(error)) from error
