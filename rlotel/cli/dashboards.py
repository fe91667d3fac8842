"""`rlotel dashboards`: renders, checks and applies the dashboards."""

from __future__ import annotations

from pathlib import Path

import click

from rlotel.cli import rendering
from rlotel.render import alert, dashboard, files, lint, spelling


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


@dashboards.command(name="lint")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--loop-time", metavar="DURATION", help="How long an iteration takes, if over 15m.")
def lint_files(paths: tuple[Path, ...], loop_time: str | None) -> None:
    """Check dashboards of Cloud Monitoring: files of yours, or what the sources make."""
    chosen = rendering.options(loop_time, (), None)
    if paths:
        texts = {str(path): path.read_text(encoding="utf-8") for path in paths}
    else:
        texts = files.dashboards(dashboard.load_all(), alert.load_all(), chosen)
    rendering.report(lint.dashboards(texts, chosen.windows))
