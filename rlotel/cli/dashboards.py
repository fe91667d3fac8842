"""`rlotel dashboards`: renders, checks and applies the dashboards."""

from __future__ import annotations

from pathlib import Path

import click

from rlotel.cli import rendering
from rlotel.render import alert, dashboard, files, spelling


@click.group(cls=rendering.Sourced)
def dashboards() -> None:
    """Dashboards for Cloud Monitoring and Grafana, from one source."""


@dashboards.command()
@rendering.choices
@rendering.spellings
@click.option("--out", type=click.Path(path_type=Path), default=Path("rlotel-dashboards"), show_default=True)
@click.option("--check", is_flag=True, help="Write nothing; list what is stale, and end with 1 if something is.")
def render(
    loop_time: str | None,
    selectors: tuple[tuple[str, str], ...],
    thresholds: tuple[tuple[str, str], ...],
    runbooks: str | None,
    sources: Path | None,
    spelled: tuple[str, ...],
    out: Path,
    check: bool,
) -> None:
    """Write the files of all dashboards: Cloud Monitoring, Grafana, Terraform."""
    chosen = rendering.options(loop_time, selectors, runbooks)
    made = files.dashboards(
        dashboard.load_all(sources),
        alert.load_all(values=dict(thresholds)),
        chosen,
        [spelling.ALL[name] for name in spelled],
    )
    rendering.deliver(made, out, check)
