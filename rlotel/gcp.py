"""Dashboards and alert policies of a Google Cloud project, made what the sources say through Google's libraries.

Only what carries our label is ever changed or removed. A plan is made first, by comparing with what is there; a
failure that may pass is answered by a new plan, so that nothing is made twice, and nothing left half done unsaid.
"""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import google.auth.exceptions
from google.api_core import exceptions
from google.cloud import monitoring_dashboard_v1, monitoring_v3
from google.protobuf.json_format import MessageToDict

from rlotel.render.cloud_alert import NAME_LABEL as ALERT_LABEL
from rlotel.render.cloud_dashboard import NAME_LABEL as DASHBOARD_LABEL
from rlotel.render.cloud_dashboard import OWNER

ATTEMPTS = 4
_PASSING = (
    exceptions.ServiceUnavailable,
    exceptions.TooManyRequests,
    exceptions.DeadlineExceeded,
    exceptions.InternalServerError,
    exceptions.Aborted,
)

Wanted = Mapping[str, dict[str, Any]]
"""What should be there: the JSON of each thing by the value of its name label."""


class ApplyError(Exception):
    """Something could not be read or changed. The message says what to do, and what was done before."""


@dataclass(frozen=True)
class Change:
    """One step of a plan."""

    kind: Literal["create", "update", "remove"]
    name: str
    resource: Any = None
    """What is there now: a message of Google's library."""
    content: Any = None
    """What should be there: a message of Google's library."""

    def diff(self) -> str:
        """The difference from what is there to what should be, as a unified diff of their JSON."""
        before, after = (json.dumps(_plain(one), indent=2).splitlines() for one in (self.resource, self.content))
        return "\n".join(difflib.unified_diff(before, after, "there", self.name, lineterm=""))


class Service(Protocol):
    """One kind of thing in a project."""

    what: str
    role: str

    def wanted(self, content: dict[str, Any]) -> Any:
        """A message from JSON; it refuses fields that the API has not got."""

    def owned(self) -> Iterable[tuple[str, Any]]:
        """What carries our label: the value of its name label, and the message."""

    def keep(self, resource: Any, content: Any) -> None:
        """Copies into the content what the project's owner decides, and not we."""

    def validate(self, change: Change) -> None:
        """Asks the server whether a change would be taken, if it can be asked."""

    def do(self, change: Change) -> None:
        """Makes a change."""


class Dashboards:
    """The dashboards of a project."""

    what = "dashboards"
    role = "roles/monitoring.dashboardEditor"

    def __init__(self, client: monitoring_dashboard_v1.DashboardsServiceClient, project: str) -> None:
        self._client = client
        self._parent = f"projects/{project}"

    def wanted(self, content: dict[str, Any]) -> monitoring_dashboard_v1.Dashboard:
        """A dashboard from JSON."""
        message: monitoring_dashboard_v1.Dashboard = monitoring_dashboard_v1.Dashboard.from_json(
            json.dumps(content)
        )
        return message

    def owned(self) -> Iterator[tuple[str, Any]]:
        """Our dashboards."""
        for one in self._client.list_dashboards({"parent": self._parent}):
            if _ours(one.labels):
                yield one.labels.get(DASHBOARD_LABEL, ""), one

    def keep(self, resource: Any, content: Any) -> None:
        """Nothing of a dashboard is the owner's."""

    def validate(self, change: Change) -> None:
        """Asks for a change with `validateOnly`."""
        self._send(change, validate_only=True)

    def do(self, change: Change) -> None:
        """Makes a change."""
        if change.kind == "remove":
            self._client.delete_dashboard({"name": change.resource.name})
        else:
            self._send(change, validate_only=False)

    def _send(self, change: Change, *, validate_only: bool) -> None:
        if change.kind == "create":
            request = {"parent": self._parent, "dashboard": change.content, "validate_only": validate_only}
            self._client.create_dashboard(request)
        elif change.kind == "update":
            # The etag refuses an update of what somebody else has changed since it was compared.
            change.content.name, change.content.etag = change.resource.name, change.resource.etag
            self._client.update_dashboard({"dashboard": change.content, "validate_only": validate_only})


class Alerts:
    """The alert policies of a project.

    Args:
        client: Google's.
        project: its id.
        channels: names of notification channels; without any, those that a policy has are left alone.
    """

    what = "alert policies"
    role = "roles/monitoring.alertPolicyEditor"

    def __init__(
        self, client: monitoring_v3.AlertPolicyServiceClient, project: str, channels: Iterable[str] = ()
    ) -> None:
        self._client = client
        self._name = f"projects/{project}"
        self._channels = list(channels)

    def wanted(self, content: dict[str, Any]) -> monitoring_v3.AlertPolicy:
        """A policy from JSON."""
        channels = {"notificationChannels": self._channels} if self._channels else {}
        message: monitoring_v3.AlertPolicy = monitoring_v3.AlertPolicy.from_json(
            json.dumps({**content, **channels})
        )
        return message

    def owned(self) -> Iterator[tuple[str, Any]]:
        """Our policies."""
        for one in self._client.list_alert_policies({"name": self._name}):
            if _ours(one.user_labels):
                yield one.user_labels.get(ALERT_LABEL, ""), one

    def keep(self, resource: Any, content: Any) -> None:
        """Who is told is the owner's, unless channels were given."""
        if not self._channels:
            content.notification_channels = list(resource.notification_channels)

    def validate(self, change: Change) -> None:
        """The API cannot be asked without making the change."""

    def do(self, change: Change) -> None:
        """Makes a change."""
        if change.kind == "create":
            self._client.create_alert_policy({"name": self._name, "alert_policy": change.content})
        elif change.kind == "update":
            change.content.name = change.resource.name
            self._client.update_alert_policy({"alert_policy": change.content})
        else:
            self._client.delete_alert_policy({"name": change.resource.name})


def plan(service: Service, wanted: Wanted) -> list[Change]:
    """What has to be done so that the project has what is wanted, and nothing of ours besides.

    Raises:
        GoogleAPICallError: the project cannot be read.
    """
    changes = []
    missing = dict(wanted)
    for name, resource in service.owned():
        content = missing.pop(name, None)
        if content is None:  # not wanted any more, or there twice
            changes.append(Change("remove", name or resource.name, resource))
            continue
        message = service.wanted(content)
        service.keep(resource, message)
        if not _covers(_plain(message), _plain(resource)):
            changes.append(Change("update", name, resource, message))
    return [Change("create", name, content=service.wanted(content)) for name, content in missing.items()] + changes


def apply(
    service: Service,
    wanted: Wanted,
    project: str,
    told: Callable[[Change], None] = lambda _change: None,
    wait: Callable[[float], None] = time.sleep,
) -> list[Change]:
    """Makes the project what is wanted; the changes that were made, each of which `told` was told of.

    Every change is validated by the server first, where it can be. A failure that may pass is tried again, from a
    new plan, up to four times in all.

    Raises:
        ApplyError: it could not be finished. The message says what was done and what was not.
    """
    done: list[Change] = []
    for attempt in range(1, ATTEMPTS + 1):
        left: list[Change] = []
        try:
            left = plan(service, wanted)
            for change in left:
                service.validate(change)
            while left:
                service.do(left[0])
                done.append(left.pop(0))
                told(done[-1])
        except _PASSING as error:
            if attempt == ATTEMPTS:
                raise ApplyError(_unfinished(advice(error, service, project), done, left)) from error
            wait(2.0**attempt)
        except (exceptions.GoogleAPICallError, google.auth.exceptions.GoogleAuthError) as error:
            raise ApplyError(_unfinished(advice(error, service, project), done, left)) from error
        else:
            break
    return done


def advice(error: Exception, service: Service, project: str) -> str:
    """What went wrong, and what to do about it."""
    if isinstance(error, google.auth.exceptions.GoogleAuthError):
        return f"Google Cloud does not know who you are: gcloud auth application-default login ({error})"
    reason = getattr(error, "reason", None)
    if (
        reason == "SERVICE_DISABLED"
        or "SERVICE_DISABLED" in str(error)
        or "has not been used in project" in str(error)
    ):
        return f"the API is disabled: gcloud services enable monitoring.googleapis.com --project={project}"
    if isinstance(error, exceptions.PermissionDenied):
        return f"you need the role {service.role} to change the {service.what} of {project} ({error.message})"
    if isinstance(error, exceptions.NotFound):
        return f"there is no project {project}, or something of it was removed meanwhile ({error.message})"
    return f"{type(error).__name__}: {getattr(error, 'message', error)}"


def _unfinished(problem: str, done: list[Change], left: list[Change]) -> str:
    if not done and not left:
        return problem
    made = ", ".join(f"{change.kind} {change.name}" for change in done) or "nothing"
    not_made = ", ".join(f"{change.kind} {change.name}" for change in left) or "unknown"
    return f"{problem}\n  done: {made}\n  not done: {not_made}\nApply again to go on from there."


def _ours(labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in OWNER.items())


def _plain(message: Any) -> Any:
    if message is None:
        return {}
    # With defaults: a tile at xPos 0 is one that somebody may have moved.
    return MessageToDict(type(message).pb(message), always_print_fields_with_no_presence=True)


def _covers(wanted: Any, there: Any) -> bool:
    """Whether all that is wanted is there. The server adds names, records and defaults of its own."""
    if isinstance(wanted, dict) and isinstance(there, dict):
        server = {"name", "etag"}
        return all(_covers(value, there.get(key)) for key, value in wanted.items() if key not in server)
    if isinstance(wanted, list) and isinstance(there, list):
        return len(wanted) == len(there) and all(map(_covers, wanted, there))
    return bool(wanted == there)
