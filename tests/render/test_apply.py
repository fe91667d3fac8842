"""`apply` makes a project what the sources say, against a server made of Google's own classes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner, Result

pytest.importorskip("google.cloud.monitoring_v3")

from google.cloud import monitoring_dashboard_v1, monitoring_v3
from google.cloud.monitoring_v3.services.alert_policy_service.transports import AlertPolicyServiceGrpcTransport

from rlotel import gcp
from rlotel.cli import applying, main
from rlotel.render import alert, dashboard, files
from rlotel.render.options import Options
from tests.render.monitoring import Project, serving

DASHBOARDS = sorted(one.title for one in dashboard.load_all())
ALERTS = sorted(f"RL: {one.name}" for one in alert.load_all())
CHANNEL = "projects/p/notificationChannels/1"

Command = Callable[..., Result]


@pytest.fixture
def dashboards() -> Project:
    """The dashboards of a project."""
    return Project()


@pytest.fixture
def policies() -> Project:
    """The alert policies of the same project."""
    return Project()


@pytest.fixture
def rlotel(dashboards: Project, policies: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Runs the command line against the server."""
    with serving(dashboards, policies) as address:
        monkeypatch.setenv(applying.EMULATOR, address)

        def run(*arguments: str) -> Result:
            return CliRunner().invoke(main, [*arguments, "--project", "p", "--yes"], catch_exceptions=False)

        yield run


def test_the_first_apply_makes_everything_and_the_second_nothing(
    rlotel: Command, dashboards: Project, policies: Project
) -> None:
    assert rlotel("dashboards", "apply").exit_code == 0
    assert rlotel("alerts", "apply").exit_code == 0
    assert (dashboards.titles(), policies.titles()) == (DASHBOARDS, ALERTS)
    dashboards.calls.clear()
    policies.calls.clear()
    assert "0 to change" in rlotel("dashboards", "apply").output
    assert "0 to change" in rlotel("alerts", "apply").output
    assert (dashboards.changed(), policies.changed()) == ([], [])


def test_dashboards_are_validated_before_any_is_made(rlotel: Command, dashboards: Project) -> None:
    rlotel("dashboards", "apply")
    first = dashboards.calls.index("CreateDashboard")
    assert dashboards.calls[:first].count("validate CreateDashboard") == len(DASHBOARDS)


def test_what_the_server_refuses_in_validation_changes_nothing(rlotel: Command, dashboards: Project) -> None:
    refused = (grpc.StatusCode.INVALID_ARGUMENT, "Field widget has an invalid value", "")
    dashboards.fault = lambda call: refused if call == "validate CreateDashboard" else None
    result = rlotel("dashboards", "apply")
    assert result.exit_code == 1
    assert "Field widget has an invalid value" in result.output
    assert dashboards.resources == {}


def test_a_dry_run_shows_the_plan_and_changes_nothing(rlotel: Command, policies: Project) -> None:
    output = rlotel("alerts", "apply", "--dry-run").output
    assert output.count("+ create ") == len(ALERTS)
    assert policies.changed() == []


def test_a_changed_threshold_updates_the_one_policy_that_has_it(rlotel: Command, policies: Project) -> None:
    rlotel("alerts", "apply")
    policies.calls.clear()
    shown = rlotel("alerts", "apply", "--threshold", "idle_share=0.8", "--diff").output
    assert policies.changed() == []
    assert "> 0.5)" in shown
    assert "> 0.8)" in shown
    rlotel("alerts", "apply", "--threshold", "idle_share=0.8")
    assert policies.changed() == ["UpdateAlertPolicy"]


def test_what_somebody_changed_by_hand_is_put_back(rlotel: Command, dashboards: Project) -> None:
    rlotel("dashboards", "apply")
    dashboards.calls.clear()
    next(iter(dashboards.resources.values())).mosaic_layout.tiles[1].x_pos = 7
    rlotel("dashboards", "apply")
    assert dashboards.changed() == ["UpdateDashboard"]
    assert "0 to change" in rlotel("dashboards", "apply").output


def test_what_is_ours_and_not_wanted_any_more_is_removed(rlotel: Command, dashboards: Project) -> None:
    old = monitoring_dashboard_v1.Dashboard(
        name="projects/p/dashboards/old",
        display_name="Old",
        labels={"managed-by": "rlotel", "rlotel-dashboard": "old"},
    )
    twin = monitoring_dashboard_v1.Dashboard(old, name="projects/p/dashboards/twin", display_name="Twin")
    dashboards.resources |= {old.name: old, twin.name: twin}
    rlotel("dashboards", "apply")
    assert dashboards.titles() == DASHBOARDS


def test_what_is_not_ours_is_left_alone(rlotel: Command, policies: Project) -> None:
    theirs = monitoring_v3.AlertPolicy(name="projects/p/alertPolicies/x", display_name="Disk full")
    policies.resources[theirs.name] = theirs
    rlotel("alerts", "apply")
    assert policies.titles() == sorted(["Disk full", *ALERTS])


def test_channels_are_set_when_given_and_left_alone_otherwise(rlotel: Command, policies: Project) -> None:
    rlotel("alerts", "apply", "--notification-channel", CHANNEL)
    policies.calls.clear()
    assert "0 to change" in rlotel("alerts", "apply").output
    assert all(list(one.notification_channels) == [CHANNEL] for one in policies.resources.values())


def test_a_missing_role_is_named(rlotel: Command, dashboards: Project) -> None:
    dashboards.fault = lambda _call: (grpc.StatusCode.PERMISSION_DENIED, "Permission denied", "")
    result = rlotel("dashboards", "apply")
    assert result.exit_code == 1
    assert "roles/monitoring.dashboardEditor" in result.output


def test_a_disabled_api_says_how_to_enable_it(rlotel: Command, policies: Project) -> None:
    policies.fault = lambda _call: (grpc.StatusCode.PERMISSION_DENIED, "It is disabled", "SERVICE_DISABLED")
    result = rlotel("alerts", "apply")
    assert result.exit_code == 1
    assert "gcloud services enable monitoring.googleapis.com --project=p" in result.output


def _client(address: str) -> monitoring_v3.AlertPolicyServiceClient:
    return monitoring_v3.AlertPolicyServiceClient(
        transport=AlertPolicyServiceGrpcTransport(channel=grpc.insecure_channel(address))
    )


def _wanted() -> dict[str, dict[str, object]]:
    made = files.alerts(alert.load_all(), Options(), ())
    contents = [json.loads(text) for path, text in made.items() if path.startswith("cloud-monitoring/")]
    return {one["userLabels"]["rlotel-alert"]: one for one in contents}


def test_a_failure_that_passes_is_tried_again_and_nothing_is_made_twice(policies: Project) -> None:
    def fails_once(call: str) -> tuple[grpc.StatusCode, str, str] | None:
        third = policies.calls.count("CreateAlertPolicy") == 3
        return (grpc.StatusCode.UNAVAILABLE, "try again", "") if call == "CreateAlertPolicy" and third else None

    policies.fault = fails_once
    waited: list[float] = []
    with serving(Project(), policies) as address:
        done = gcp.apply(gcp.Alerts(_client(address), "p"), _wanted(), "p", wait=waited.append)
    assert policies.titles() == ALERTS
    assert len(done) == len(ALERTS)
    assert waited == [2.0]


def test_a_failure_that_stays_says_what_was_done_and_what_was_not(policies: Project) -> None:
    def fails_later(call: str) -> tuple[grpc.StatusCode, str, str] | None:
        many = policies.calls.count("CreateAlertPolicy") > 2
        return (grpc.StatusCode.UNAVAILABLE, "no", "") if call == "CreateAlertPolicy" and many else None

    policies.fault = fails_later
    with serving(Project(), policies) as address, pytest.raises(gcp.ApplyError) as failed:
        gcp.apply(gcp.Alerts(_client(address), "p"), _wanted(), "p", wait=lambda _seconds: None)
    names = list(_wanted())
    assert f"done: create {names[0]}, create {names[1]}\n" in str(failed.value)
    assert "not done: " + ", ".join(f"create {name}" for name in names[2:]) in str(failed.value)
    assert len(policies.resources) == 2


def test_without_credentials_it_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(applying.EMULATOR, raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    result = CliRunner().invoke(main, ["alerts", "apply", "--project", "p", "--dry-run"])
    assert result.exit_code == 1
    assert "gcloud auth application-default login" in result.output


def test_without_googles_libraries_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.api_core", None)
    result = CliRunner().invoke(main, ["alerts", "apply", "--project", "p"])
    assert (result.exit_code, result.output) == (
        1,
        "Error: google.api_core is not installed: pip install 'rlotel[gcp]'\n",
    )
