"""rlotel as an instrumentation of OpenTelemetry's own kind: `opentelemetry-instrument python train.py`.

Only OpenTelemetry's loader imports this, through an entry point: rlotel itself does not need
`opentelemetry-instrumentation`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]

from rlotel import autostart
from rlotel.errors import log
from rlotel.session import uninstrument


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
        autostart.start(tracer_provider, meter_provider)

    def _uninstrument(self, **kwargs: Any) -> None:  # noqa: ARG002 - OpenTelemetry's signature
        uninstrument()
