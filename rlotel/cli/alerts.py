"""`rlotel alerts`: renders, checks, tests and applies the alerts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlotel.cli import applying, rendering
from rlotel.render import alert, files, lint, promtool, spelling
from rlotel.render.cloud_alert import NAME_LABEL

if TYPE_CHECKING:
    from rlotel.gcp import Service


@click.group(cls=rendering.Sourced)
def alerts() -> None:
    """Alerts for Cloud Monitoring and Prometheus, from one source."""


@alerts.command(short_help="Write the files of all alerts.")
@rendering.choices
@rendering.spellings
@rendering.written_to("rlotel-alerts")
def render(
    chosen: rendering.Chosen,
    spelled: tuple[str, ...],
    out: Path,
    check: bool,
) -> None:
    """Write the files of all alerts: Cloud Monitoring, Prometheus, Terraform."""
    made = files.alerts(
        alert.load_all(chosen.sources, chosen.thresholds), chosen.options, [spelling.ALL[name] for name in spelled]
    )
    rendering.deliver(made, out, check)


@alerts.command(name="list")
@rendering.choices
def list_alerts(
    chosen: rendering.Chosen,
) -> None:
    """List the alerts with their thresholds, and why each has its value."""
    for one in alert.load_all(chosen.sources, chosen.thresholds):
        click.echo(f"{one.name} ({one.severity})\n  {one.symptom} {one.losing}")
        for threshold in one.thresholds:
            click.echo(f"    {threshold.name} = {threshold.text(chosen.options.windows)}: {threshold.because}")


@alerts.command(name="lint", short_help="Check alert policies of Cloud Monitoring.")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--loop-time", metavar="DURATION", help="How long an iteration takes, if over 15m.")
def lint_files(paths: tuple[Path, ...], loop_time: str | None) -> None:
    """Check alert policies of Cloud Monitoring: files of yours, or what the sources make."""
    options = rendering.options(loop_time, (), None)
    if paths:
        texts = {str(path): path.read_text(encoding="utf-8") for path in paths}
    else:
        texts = files.alerts(alert.load_all(), options)
    rendering.report(lint.policies(texts, options.windows))


@alerts.command(short_help="Run every alert against its cases with promtool.")
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
    chosen: rendering.Chosen,
    spelled: str,
) -> None:
    """Run every alert against its cases with promtool: one that must fire, one that must not.

    The cases are written for the thresholds that come with rlotel; with others some may rightly fail.
    """
    loaded = alert.load_all(chosen.sources, chosen.thresholds)
    try:
        wrong = promtool.check(loaded, spelling.ALL[spelled], chosen.options, chosen.sources)
    except promtool.PromtoolMissingError as error:
        raise click.ClickException(str(error)) from error
    if wrong is not None:
        raise click.ClickException(wrong)
    click.echo(f"{len(loaded)} alerts fire when they should and are silent when they should.")


@alerts.command(short_help="Make a project's alert policies what the sources say.")
@rendering.choices
@applying.choices
@click.option(
    "--notification-channel",
    "channels",
    multiple=True,
    metavar="NAME",
    help="Who is told: projects/P/notificationChannels/N; repeat it. Without any, those that are set stay.",
)
def apply(
    chosen: rendering.Chosen,
    project: str,
    dry_run: bool,
    diff: bool,
    yes: bool,
    channels: tuple[str, ...],
) -> None:
    """Make the alert policies of a Google Cloud project what the sources say; only those of rlotel are touched."""
    made = files.alerts(alert.load_all(chosen.sources, chosen.thresholds), chosen.options, ())

    def service() -> Service:
        from rlotel import gcp

        return gcp.Alerts(applying.alerts_client(), project, channels)

    applying.run(
        service, made, lambda one: str(one["userLabels"][NAME_LABEL]), project, dry_run=dry_run, diff=diff, yes=yes
    )
