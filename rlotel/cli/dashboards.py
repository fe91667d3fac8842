"""`rlotel dashboards`: renders, checks and applies the dashboards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlotel.cli import applying, rendering
from rlotel.render import alert, dashboard, files, lint, spelling
from rlotel.render.cloud_dashboard import NAME_LABEL

if TYPE_CHECKING:
    from rlotel.gcp import Service


@click.group(cls=rendering.Sourced)
def dashboards() -> None:
    """Dashboards for Cloud Monitoring and Grafana, from one source."""


@dashboards.command()
@rendering.choices
@rendering.spellings
@click.option("--out", type=click.Path(path_type=Path), default=Path("rlotel-dashboards"), show_default=True)
@click.option("--check", is_flag=True, help="Write nothing; list what is stale, and end with 1 if something is.")
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


@dashboards.command(name="lint")
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


@dashboards.command()
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
