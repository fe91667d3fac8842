"""`rlotel alerts`: renders, checks, tests and applies the alerts."""

from __future__ import annotations

from pathlib import Path

import click

from rlotel.cli import rendering
from rlotel.render import alert, files, lint, promtool, spelling


@click.group(cls=rendering.Sourced)
def alerts() -> None:
    """Alerts for Cloud Monitoring and Prometheus, from one source."""


@alerts.command()
@rendering.choices
@rendering.spellings
@click.option("--out", type=click.Path(path_type=Path), default=Path("rlotel-alerts"), show_default=True)
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
    """Write the files of all alerts: Cloud Monitoring, Prometheus, Terraform."""
    chosen = rendering.options(loop_time, selectors, runbooks)
    made = files.alerts(
        alert.load_all(sources, dict(thresholds)), chosen, [spelling.ALL[name] for name in spelled]
    )
    rendering.deliver(made, out, check)


@alerts.command(name="list")
@rendering.choices
def list_alerts(
    loop_time: str | None,
    selectors: tuple[tuple[str, str], ...],
    thresholds: tuple[tuple[str, str], ...],
    runbooks: str | None,
    sources: Path | None,
) -> None:
    """List the alerts with their thresholds, and why each has its value."""
    times = rendering.options(loop_time, selectors, runbooks).windows
    for one in alert.load_all(sources, dict(thresholds)):
        click.echo(f"{one.name} ({one.severity})\n  {one.symptom} {one.losing}")
        for threshold in one.thresholds:
            click.echo(f"    {threshold.name} = {threshold.text(times)}: {threshold.because}")


@alerts.command(name="lint")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--loop-time", metavar="DURATION", help="How long an iteration takes, if over 15m.")
def lint_files(paths: tuple[Path, ...], loop_time: str | None) -> None:
    """Check alert policies of Cloud Monitoring: files of yours, or what the sources make."""
    chosen = rendering.options(loop_time, (), None)
    if paths:
        texts = {str(path): path.read_text(encoding="utf-8") for path in paths}
    else:
        texts = files.alerts(alert.load_all(), chosen)
    rendering.report(lint.policies(texts, chosen.windows))


@alerts.command()
@rendering.choices
@click.option(
    "--spelling",
    "spelled",
    type=click.Choice([one.name for one in files.PROMETHEUS]),
    default=files.PROMETHEUS[0].name,
    show_default=True,
    help="How your Prometheus writes names.",
)
def test(
    loop_time: str | None,
    selectors: tuple[tuple[str, str], ...],
    thresholds: tuple[tuple[str, str], ...],
    runbooks: str | None,
    sources: Path | None,
    spelled: str,
) -> None:
    """Run every alert against its cases with promtool: one that must fire, one that must not.

    The cases are written for the thresholds that come with rlotel; with others some may rightly fail.
    """
    chosen = rendering.options(loop_time, selectors, runbooks)
    loaded = alert.load_all(sources, dict(thresholds))
    try:
        wrong = promtool.check(loaded, spelling.ALL[spelled], chosen, sources)
    except promtool.PromtoolMissingError as error:
        raise click.ClickException(str(error)) from error
    if wrong is not None:
        raise click.ClickException(wrong)
    click.echo(f"{len(loaded)} alerts fire when they should and are silent when they should.")
