"""What `rlotel dashboards apply` and `rlotel alerts apply` share: options, clients, the plan on the screen."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from google.cloud.monitoring_dashboard_v1 import DashboardsServiceClient
    from google.cloud.monitoring_v3 import AlertPolicyServiceClient

    from rlotel.gcp import Service

Command = TypeVar("Command", bound=Callable[..., Any])

EMULATOR = "MONITORING_EMULATOR_HOST"
"""host:port of a server that stands in for Google's, without TLS and credentials."""
_SIGNS = {"create": "+", "update": "~", "remove": "-"}


def choices(command: Command) -> Command:
    """Adds the options of applying."""
    for option in (
        click.option("--project", required=True, help="The Google Cloud project."),
        click.option("--dry-run", is_flag=True, help="Only show what would be done."),
        click.option("--diff", is_flag=True, help="Show what would be done, with every difference; do nothing."),
        click.option("--yes", is_flag=True, help="Do not ask."),
    ):
        command = option(command)
    return command


def dashboards_client() -> DashboardsServiceClient:
    """Google's client for dashboards."""
    from google.cloud import monitoring_dashboard_v1
    from google.cloud.monitoring_dashboard_v1.services.dashboards_service import transports

    channel = _channel()
    if channel is None:
        return monitoring_dashboard_v1.DashboardsServiceClient()
    transport = transports.DashboardsServiceGrpcTransport(channel=channel)
    return monitoring_dashboard_v1.DashboardsServiceClient(transport=transport)


def alerts_client() -> AlertPolicyServiceClient:
    """Google's client for alert policies."""
    from google.cloud import monitoring_v3
    from google.cloud.monitoring_v3.services.alert_policy_service import transports

    channel = _channel()
    if channel is None:
        return monitoring_v3.AlertPolicyServiceClient()
    transport = transports.AlertPolicyServiceGrpcTransport(channel=channel)
    return monitoring_v3.AlertPolicyServiceClient(transport=transport)


def run(
    service: Callable[[], Service],
    files: dict[str, str],
    label: Callable[[dict[str, Any]], str],
    project: str,
    *,
    dry_run: bool,
    diff: bool,
    yes: bool,
) -> None:
    """Shows the plan and carries it out.

    Raises:
        ClickException: it could not be carried out.
    """
    try:
        import google.auth.exceptions
        from google.api_core import exceptions

        from rlotel import gcp
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error.name} is not installed: pip install 'rlotel[gcp]'") from error

    contents = [json.loads(text) for path, text in files.items() if path.startswith("cloud-monitoring/")]
    wanted = {label(content): content for content in contents}
    try:
        opened = service()
    except google.auth.exceptions.GoogleAuthError as error:
        raise click.ClickException(
            f"Google Cloud does not know who you are: gcloud auth application-default login ({error})"
        ) from error
    try:
        changes = gcp.plan(opened, wanted)
    except (exceptions.GoogleAPICallError, google.auth.exceptions.GoogleAuthError) as error:
        raise click.ClickException(gcp.advice(error, opened, project)) from error
    for change in changes:
        click.echo(f"{_SIGNS[change.kind]} {change.kind} {change.name}")
        if diff:
            click.echo(change.diff())
    click.echo(f"{opened.what} of {project}: {len(changes)} to change, {len(wanted)} in all")
    if not changes or dry_run or diff or not (yes or click.confirm("Do it?")):
        return
    try:
        gcp.apply(opened, wanted, project, lambda change: click.echo(f"{change.kind}d {change.name}"))
    except gcp.ApplyError as error:
        raise click.ClickException(str(error)) from error


def _channel() -> Any:
    address = os.environ.get(EMULATOR)
    if not address:
        return None
    import grpc

    return grpc.insecure_channel(address)
