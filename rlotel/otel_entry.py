"""rlotel as an instrumentation of OpenTelemetry's own kind: `opentelemetry-instrument python train.py`.

Only OpenTelemetry's loader imports this, through an entry point: rlotel itself does not need
`opentelemetry-instrumentation`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from typing import Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]

from rlotel import autostart
from rlotel.config import Protocol
from rlotel.errors import log
from rlotel.session import uninstrument

_GENERIC = "OTEL_EXPORTER_OTLP"
_FOR_HTTP = re.compile(r":4318(/|$)")


class RlotelInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """The one line, as OpenTelemetry calls it.

    With a `tracer_provider` and a `meter_provider` telemetry goes through these, else through rlotel's own,
    which bound their exit and leave the random generators alone. What cannot be started is said in one line and
    never raised: under `opentelemetry-instrument` that would switch off the other instrumentations too.
    """

    def instrumentation_dependencies(self) -> Collection[str]:
        """None: the frameworks are found, or not, by rlotel itself."""
        return []

    def _instrument(self, **kwargs: Any) -> None:
        tracer_provider, meter_provider = kwargs.get("tracer_provider"), kwargs.get("meter_provider")
        if (tracer_provider is None) != (meter_provider is None):
            log.warning("rlotel uses providers of its own: it was given only one of tracer_ and meter_provider")
            tracer_provider = meter_provider = None
        autostart.start(tracer_provider, meter_provider, _protocol(os.environ))

    def _uninstrument(self, **kwargs: Any) -> None:  # noqa: ARG002 - OpenTelemetry's signature
        uninstrument()


def _protocol(environ: Mapping[str, str]) -> Protocol | None:
    """HTTP where every endpoint has the port of HTTP and only the launcher says otherwise, else None.

    The launcher sets `OTEL_EXPORTER_OTLP_PROTOCOL=grpc` where nothing is set, for all its children, so that it
    cannot be told from a user's. A user who does want gRPC on port 4318 says so with `RLOTEL_PROTOCOL`.
    """
    if environ.get("RLOTEL_PROTOCOL") or environ.get(f"{_GENERIC}_PROTOCOL") != "grpc":
        return None
    own = environ.get("RLOTEL_ENDPOINT", "").strip()
    others = [environ.get(f"{_GENERIC}_{of}ENDPOINT", "").strip() for of in ("", "METRICS_", "TRACES_")]
    endpoints = [own] if own else list(filter(None, others))
    return "http/protobuf" if endpoints and all(map(_FOR_HTTP.search, endpoints)) else None
