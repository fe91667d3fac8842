"""The gRPC half of the embedded receiver, on OpenTelemetry's generated service classes."""

from __future__ import annotations

import threading
from concurrent import futures
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as logs
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as traces

from rlotel.receiver.reply import MESSAGE_LIMIT_BYTES, Certificate, ExportResponse, Take

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlotel.otlp_json import ExportRequest

_T = TypeVar("_T")
_CLOSE_TIMEOUT_S = 5.0


class GrpcServer:
    """Serves OTLP/gRPC from daemon threads, one a request, until `close`."""

    def __init__(
        self,
        host: str,
        port: int,
        tls: Certificate | None,
        take: Take,
    ) -> None:
        self._server = grpc.server(
            _ThreadPerRequest(),
            options=[
                ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
                # Otherwise a second server on a taken port would get every other connection, silently.
                ("grpc.so_reuseport", 0),
            ],
        )
        servicer = _Servicer(take)
        metrics.add_MetricsServiceServicer_to_server(servicer, self._server)  # type: ignore[no-untyped-call]
        traces.add_TraceServiceServicer_to_server(servicer, self._server)  # type: ignore[no-untyped-call]
        logs.add_LogsServiceServicer_to_server(servicer, self._server)  # type: ignore[no-untyped-call]
        address = f"{host}:{port}"
        try:
            if tls is None:
                self.port = self._server.add_insecure_port(address)
            else:
                certificate, key = (Path(file).read_bytes() for file in tls)
                self.port = self._server.add_secure_port(
                    address, grpc.ssl_server_credentials([(key, certificate)])
                )
        except RuntimeError as error:
            raise OSError(f"gRPC cannot listen on {address}; is the port taken? ({error})") from error
        self._server.start()

    def close(self) -> None:
        """Stops listening and cancels what is open; that also wakes requests that were waiting."""
        self._server.stop(grace=None).wait(_CLOSE_TIMEOUT_S)


class _Servicer(metrics.MetricsServiceServicer, traces.TraceServiceServicer, logs.LogsServiceServicer):
    """All three services in one: each has the one method, and the request says which it is."""

    def __init__(self, take: Take) -> None:
        self._take = take

    def Export(self, request: ExportRequest, context: grpc.ServicerContext) -> ExportResponse:  # noqa: N802 - the service's name for it
        headers = {str(key): str(value) for key, value in context.invocation_metadata()}
        reply = self._take("grpc", headers, request)
        over = threading.Event()
        if not context.add_callback(over.set):
            over.set()
        over.wait(None if reply.silent else reply.delay)
        if reply.accepts("grpc"):
            return reply.response(request)
        return context.abort(grpc.StatusCode.UNKNOWN if reply.silent else reply.grpc_code, reply.message)


class _ThreadPerRequest(futures.ThreadPoolExecutor):
    """A daemon thread for every request.

    A pool of fixed size would be used up by requests that are never answered, and Python waits for a pool's
    threads at exit.
    """

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> futures.Future[_T]:
        future: futures.Future[_T] = futures.Future()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - the future carries it, as a pool's would
                future.set_exception(error)

        threading.Thread(target=run, name="rlotel-receiver-grpc", daemon=True).start()
        return future
