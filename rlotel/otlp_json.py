"""OTLP export requests as one line of OTLP JSON each, and back.

OTLP JSON is protobuf's JSON mapping with two differences: trace and span ids are lower-case hexadecimal
(protobuf would write base64), and enumerations are integers.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

Signal = Literal["metrics", "traces", "logs"]
ExportRequest: TypeAlias = ExportMetricsServiceRequest | ExportTraceServiceRequest | ExportLogsServiceRequest

REQUESTS: dict[Signal, type[ExportRequest]] = {
    "metrics": ExportMetricsServiceRequest,
    "traces": ExportTraceServiceRequest,
    "logs": ExportLogsServiceRequest,
}
KEYS: dict[Signal, str] = {"metrics": "resourceMetrics", "traces": "resourceSpans", "logs": "resourceLogs"}
"""The one key of each request, by which they are told apart."""

_M = TypeVar("_M", bound="Message")
_IDS = frozenset({"trace_id", "span_id", "parent_span_id"})


def signal_of(request: ExportRequest) -> Signal:
    """The signal an export request carries."""
    return next(signal for signal, kind in REQUESTS.items() if isinstance(request, kind))


def to_line(request: ExportRequest) -> str:
    r"""One export request as OTLP JSON without a line break in it (and without one at its end).

    Everything beyond ASCII is written as `\u…`, because some line readers also break at U+2028 and U+0085.
    """
    body = to_object(request)
    if not body:
        # An empty request must still say what it is a request of.
        body = {KEYS[signal_of(request)]: []}
    return json.dumps(body, separators=(",", ":"), allow_nan=False)


def to_object(message: Message) -> dict[str, Any]:
    """Any OTLP message as the object that OTLP JSON writes for it."""
    body = json_format.MessageToDict(message, use_integers_for_enums=True)
    _convert_ids(body, message.DESCRIPTOR, lambda text: base64.b64decode(text).hex())
    return body


def from_line(line: str) -> ExportRequest:
    """The export request in one line of OTLP JSON; fields it does not know are left out.

    Raises:
        ValueError: the line is no OTLP JSON export request.
    """
    body = _load(line)
    for signal, key in KEYS.items():
        if key in body:
            return _parse(body, REQUESTS[signal])
    raise no_request()


def no_request() -> ValueError:
    """What is raised of a JSON object in which there is no export request."""
    return ValueError(f"no OTLP export request: none of {', '.join(KEYS.values())} in it")


def from_text(text: str | bytes, kind: type[_M]) -> _M:
    """The message of a known kind in an OTLP JSON text.

    Raises:
        ValueError: the text is no OTLP JSON of that kind.
    """
    return _parse(_load(text), kind)


def _load(text: str | bytes) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply for OTLP JSON") from None
    if not isinstance(body, dict):
        raise ValueError(f"OTLP JSON is an object, not a {type(body).__name__}")
    return body


def _parse(body: dict[str, Any], kind: type[_M]) -> _M:
    message = kind()
    try:
        _convert_ids(body, message.DESCRIPTOR, lambda text: base64.b64encode(bytes.fromhex(text)).decode())
        return json_format.ParseDict(body, message, ignore_unknown_fields=True)
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise ValueError(f"no OTLP JSON of a {kind.__name__}: {error}") from error


def _convert_ids(node: Any, descriptor: Any, convert: Callable[[str], str]) -> None:
    """Rewrites the ids of a message's JSON object in place.

    It goes by the descriptor, so that an unknown field that happens to be called `traceId` is left alone.
    """
    if not isinstance(node, dict):
        return  # what should be an object and is none is left for the parser to refuse
    for key, value in node.items():
        field = descriptor.fields_by_camelcase_name.get(key) or descriptor.fields_by_name.get(key)
        if field is None:
            continue
        if field.message_type is not None:
            for child in value if isinstance(value, list) else (value,):
                _convert_ids(child, field.message_type, convert)
        elif field.name in _IDS and isinstance(value, str):
            node[key] = convert(value)
