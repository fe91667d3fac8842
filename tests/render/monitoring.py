"""A server in Google's place: both services of Cloud Monitoring, over gRPC, made of the library's own classes."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import grpc
from google.cloud import monitoring_dashboard_v1 as dashboards
from google.cloud import monitoring_v3 as alerts
from google.protobuf import any_pb2
from google.protobuf.empty_pb2 import Empty
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

Resource = TypeVar("Resource")
Fault = Callable[[str], tuple[grpc.StatusCode, str, str] | None]


@dataclass
class Project:
    """What the project holds, every call that came, and which calls fail."""

    resources: dict[str, Any] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    fault: Fault = lambda _call: None
    """Given the name of a call, the status, message and reason that it fails with, if it does."""
    number: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def changed(self) -> list[str]:
        """The calls that changed something, in order."""
        return [call for call in self.calls if not call.startswith("validate") and not call.startswith("List")]

    def titles(self) -> list[str]:
        """What there is, by its display name."""
        return sorted(one.display_name for one in self.resources.values())


def _dashboard_methods(project: Project) -> dict[str, Any]:
    def create(request: dashboards.CreateDashboardRequest) -> dashboards.Dashboard:
        return _stored(project, request.dashboard, "dashboards", keep=not request.validate_only)

    def update(request: dashboards.UpdateDashboardRequest) -> dashboards.Dashboard:
        if request.dashboard.etag != project.resources[request.dashboard.name].etag:
            raise _Refused(grpc.StatusCode.ABORTED, "somebody else was faster", "")
        return _stored(project, request.dashboard, "dashboards", keep=not request.validate_only)

    def listed(_request: Any) -> dashboards.ListDashboardsResponse:
        return dashboards.ListDashboardsResponse(dashboards=list(project.resources.values()))

    return {
        "ListDashboards": (dashboards.ListDashboardsRequest, listed),
        "CreateDashboard": (dashboards.CreateDashboardRequest, create),
        "UpdateDashboard": (dashboards.UpdateDashboardRequest, update),
        "DeleteDashboard": (dashboards.DeleteDashboardRequest, _deleting(project)),
    }


def _alert_methods(project: Project) -> dict[str, Any]:
    def create(request: alerts.CreateAlertPolicyRequest) -> alerts.AlertPolicy:
        return _stored(project, request.alert_policy, "alertPolicies")

    def update(request: alerts.UpdateAlertPolicyRequest) -> alerts.AlertPolicy:
        return _stored(project, request.alert_policy, "alertPolicies")

    def listed(_request: Any) -> alerts.ListAlertPoliciesResponse:
        return alerts.ListAlertPoliciesResponse(alert_policies=list(project.resources.values()))

    return {
        "ListAlertPolicies": (alerts.ListAlertPoliciesRequest, listed),
        "CreateAlertPolicy": (alerts.CreateAlertPolicyRequest, create),
        "UpdateAlertPolicy": (alerts.UpdateAlertPolicyRequest, update),
        "DeleteAlertPolicy": (alerts.DeleteAlertPolicyRequest, _deleting(project)),
    }


class _Refused(Exception):
    """A call is answered with an error."""

    def __init__(self, code: grpc.StatusCode, message: str, reason: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


def _stored(project: Project, resource: Resource, what: str, *, keep: bool = True) -> Resource:
    stored: Any = copy.deepcopy(resource)
    stored.name = stored.name or f"projects/p/{what}/{next(project.number)}"
    if what == "dashboards":
        stored.etag = f"etag-{next(project.number)}"
    else:
        # The server names the conditions, and notes who made the policy.
        for condition in stored.conditions:
            condition.name = f"{stored.name}/conditions/{next(project.number)}"
        stored.creation_record = {"mutated_by": "somebody"}
    if keep:
        project.resources[stored.name] = stored
    return cast("Resource", stored)


def _deleting(project: Project) -> Callable[[Any], Empty]:
    def delete(request: Any) -> Empty:
        del project.resources[request.name]
        return Empty()

    return delete


def _handler(project: Project, name: str, request_class: Any, answer: Callable[[Any], Any]) -> Any:
    def handle(request: Any, context: grpc.ServicerContext) -> Any:
        validated = getattr(request, "validate_only", False)
        call = f"validate {name}" if validated else name
        project.calls.append(call)
        try:
            if fault := project.fault(call):
                raise _Refused(*fault)
            return answer(request)
        except _Refused as refused:
            context.abort_with_status(rpc_status.to_status(_status(refused)))

    def serialize(message: Any) -> bytes:
        if isinstance(message, Empty):
            return message.SerializeToString()
        return bytes(type(message).serialize(message))

    return grpc.unary_unary_rpc_method_handler(handle, request_class.deserialize, serialize)


def _status(refused: _Refused) -> status_pb2.Status:
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason=refused.reason, domain="googleapis.com"))
    return status_pb2.Status(
        code=refused.code.value[0], message=str(refused), details=[detail] if refused.reason else []
    )


@contextmanager
def serving(dashboard_project: Project, alert_project: Project) -> Iterator[str]:
    """The address of a server with both services."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    for service, project, methods in (
        ("google.monitoring.dashboard.v1.DashboardsService", dashboard_project, _dashboard_methods),
        ("google.monitoring.v3.AlertPolicyService", alert_project, _alert_methods),
    ):
        handlers = {name: _handler(project, name, *parts) for name, parts in methods(project).items()}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()
