"""What the embedded receiver was asked, and how it is told to answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from rlotel.otlp_json import ExportRequest, Signal, signal_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

Protocol = Literal["http/protobuf", "http/json", "grpc"]
"""In the words of `OTEL_EXPORTER_OTLP_PROTOCOL`."""

ExportResponse: TypeAlias = ExportMetricsServiceResponse | ExportTraceServiceResponse | ExportLogsServiceResponse

Take: TypeAlias = "Callable[[Protocol, dict[str, str], ExportRequest], Reply]"
"""What a server hands each request to, and learns the answer from."""

Certificate: TypeAlias = "tuple[str | os.PathLike[str], str | os.PathLike[str]]"
"""The files of a PEM certificate chain and of its private key."""

MESSAGE_LIMIT_BYTES = 64 * 1024 * 1024
"""The largest request either server takes, unpacked."""

_GRPC_STATUS = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.UNIMPLEMENTED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
}
_RESPONSES: dict[Signal, tuple[type[ExportResponse], str]] = {
    "metrics": (ExportMetricsServiceResponse, "rejected_data_points"),
    "traces": (ExportTraceServiceResponse, "rejected_spans"),
    "logs": (ExportLogsServiceResponse, "rejected_log_records"),
}


class Request(NamedTuple):
    """One export request as it arrived. Header names (gRPC: metadata keys) are in lower case."""

    signal: Signal
    protocol: Protocol
    headers: dict[str, str]
    message: ExportRequest


@dataclass(frozen=True)
class Reply:
    """How to answer; without arguments, with success."""

    http_status: int = 200
    grpc_status: grpc.StatusCode | None = None
    """None: the one a collector gives where `http_status` is its answer over HTTP."""
    message: str = ""
    """The body of a bad HTTP answer, the details of a bad gRPC one, the error message of a partial success."""
    retry_after: int | None = None
    """Seconds: the header Retry-After of a bad HTTP answer."""
    rejected: int = 0
    """How many points, spans or log records a success says it did not take."""
    delay: float = 0.0
    """Seconds to wait before answering; what was sent is taken before."""
    silent: bool = False
    """Never answer."""

    @property
    def grpc_code(self) -> grpc.StatusCode:
        """The answer over gRPC."""
        if self.grpc_status is not None:
            return self.grpc_status
        if 200 <= self.http_status < 300:
            return grpc.StatusCode.OK
        return _GRPC_STATUS.get(self.http_status, grpc.StatusCode.UNKNOWN)

    def accepts(self, protocol: Protocol) -> bool:
        """Whether this takes the request that it answers."""
        if self.silent:
            return False
        if protocol == "grpc":
            return self.grpc_code is grpc.StatusCode.OK
        return 200 <= self.http_status < 300

    def response(self, request: ExportRequest) -> ExportResponse:
        """The body of a success."""
        kind, rejected = _RESPONSES[signal_of(request)]
        response = kind()
        if self.rejected or self.message:
            setattr(response.partial_success, rejected, self.rejected)
            response.partial_success.error_message = self.message
        return response
