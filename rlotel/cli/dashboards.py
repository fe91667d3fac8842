"""`rlotel dashboards`: renders, checks and applies the dashboards."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlotel.cli import applying, rendering
from rlotel.render import alert, dashboard, files, lint, spelling
from rlotel.render.cloud_dashboard import NAME_LABEL
from rlotel.render.lines import lines
from rlotel.render.query import Scope

if TYPE_CHECKING:
    from rlotel.gcp import Service


@click.group(cls=rendering.Sourced)
def dashboards() -> None:
    """Dashboards for Cloud Monitoring and Grafana, from one source."""


@dashboards.command(short_help="Write the files of all dashboards.")
@rendering.choices
@rendering.spellings
@rendering.written_to("rlotel-dashboards")
def render(
    chosen: rendering.Chosen,
    spelled: tuple[str, ...],
    out: Path,
    check: bool,
) -> None:
    """Write the files of all dashboards: Cloud Monitoring, Grafana, Terraform."""
    made = files.dashboards(
        dashboard.load_all(chosen.sources),
        alert.load_all(values=chosen.thresholds),
        chosen.options,
        [spelling.ALL[name] for name in spelled],
    )
    rendering.deliver(made, out, check)


@dashboards.command(name="lint", short_help="Check dashboards of Cloud Monitoring.")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--loop-time", metavar="DURATION", help="How long an iteration takes, if over 15m.")
def lint_files(paths: tuple[Path, ...], loop_time: str | None) -> None:
    """Check dashboards of Cloud Monitoring: files of yours, or what the sources make."""
    options = rendering.options(loop_time, (), None)
    if paths:
        texts = {str(path): path.read_text(encoding="utf-8") for path in paths}
    else:
        texts = files.dashboards(dashboard.load_all(), alert.load_all(), options)
    rendering.report(lint.dashboards(texts, options.windows))


@dashboards.command(short_help="Make a project's dashboards what the sources say.")
@rendering.choices
@applying.choices
def apply(
    chosen: rendering.Chosen,
    project: str,
    dry_run: bool,
    diff: bool,
    yes: bool,
) -> None:
    """Make the dashboards of a Google Cloud project what the sources say; only those of rlotel are touched."""
    made = files.dashboards(
        dashboard.load_all(chosen.sources), alert.load_all(values=chosen.thresholds), chosen.options, ()
    )

    def service() -> Service:
        from rlotel import gcp

        return gcp.Dashboards(applying.dashboards_client(), project)

    applying.run(
        service, made, lambda one: str(one["labels"][NAME_LABEL]), project, dry_run=dry_run, diff=diff, yes=yes
    )


@dashboards.command()
@rendering.choices
@click.argument("name", metavar="DASHBOARD")
@click.option("--prometheus", "url", required=True, metavar="URL", help="The Prometheus that has the values.")
@click.option(
    "--hours",
    type=click.FloatRange(min=0, min_open=True),
    default=6.0,
    show_default=True,
    help="How much to show.",
)
@click.option("--end", type=float, help="Until when, in seconds since 1970; by default now.")
@click.option(
    "--spelling",
    "spelled",
    type=click.Choice(list(spelling.ALL)),
    default=spelling.PROMETHEUS.name,
    show_default=True,
    help="How your Prometheus writes names.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="A .png or .svg file.")
def preview(
    chosen: rendering.Chosen, name: str, url: str, hours: float, end: float | None, spelled: str, out: Path
) -> None:
    """Draw a dashboard as a picture, with the values of a Prometheus."""
    try:
        from rlotel.render.preview import Source, draw
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error.name} is not installed: pip install 'rlotel[preview]'") from error
    known = {one.name: one for one in dashboard.load_all(chosen.sources)}
    if name not in known:
        raise click.UsageError(f"no dashboard {name}; there are {', '.join(known)}")
    shown = known[name]
    options = chosen.options
    until = time.time() if end is None else end
    drawn = lines(shown, alert.load_all(values=chosen.thresholds), options.windows)
    scope = Scope(spelling.ALL[spelled], options.windows.window_s, options.matchers)
    try:
        draw(shown, drawn, scope, Source(url, until - hours * 3600, until), out)
    except OSError as error:
        raise click.ClickException(f"{url} does not answer, or {out} cannot be written: {error}") from error
    click.echo(f"wrote {out}")
