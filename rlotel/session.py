"""`instrument()`, `uninstrument()` and the one open session.

What a session is made of is imported as one is opened: `import rlotel` alone loads no SDK.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from rlotel.clock import Clock, SystemClock
from rlotel.config import Config, resolve, sdk_disabled
from rlotel.errors import SettingError
from rlotel.handover import environment as settings_of
from rlotel.handover import launched

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import TracerProvider

    from rlotel.delivery import Delivery
    from rlotel.opened import Factory, Session
    from rlotel.providers import Providers
    from rlotel.recorder import Recorder
    from rlotel.semconv.attributes import RunState

_session: Session | None = None
_opening = threading.RLock()


def recorder() -> Recorder | None:
    """The open session's recorder, or None: the one look-up that every call of the public API makes."""
    return _session.recorder if _session is not None else None


def current() -> Session | None:
    """The open session, or None."""
    return _session


def instrument(
    *,
    run_id: str | None = None,
    system: str | None = None,
    system_version: str | None = None,
    algorithm: str | None = None,
    model: str | None = None,
    environment: str | None = None,
    environment_type: str | None = None,
    frameworks: str | Iterable[str] | None = None,
    gpus: int | None = None,
    peak_flops: float | None = None,
    peak_bandwidth: float | None = None,
    gpu: bool | None = None,
    endpoint: str | None = None,
    protocol: str | None = None,
    headers: Mapping[str, str] | None = None,
    export_interval: float | None = None,
    capture: str | None = None,
    location: str | None = None,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> Session:
    """Observe this process and those it starts. Once, before training.

    A second call returns the open session, such as that of `rlotel run`; what it says of the run is still heard.

    Every setting can be given by a variable instead (`RLOTEL_RUN_ID`, …); the table in the README says what each
    means. Providers of the host application are used only if they are handed over here, both of them.

    Raises:
        SettingError: a setting cannot be used; nothing is instrumented then.
    """
    arguments = {name: value for name, value in locals().items() if not name.endswith("_provider")}
    if (tracer_provider is None) != (meter_provider is None):
        missing = "meter_provider" if meter_provider is None else "tracer_provider"
        raise SettingError(missing, "give tracer_provider and meter_provider together, or neither")
    environ = settings_of(os.environ)
    config = resolve(arguments, environ)

    from rlotel import providers

    def factory(found: Resource, delivery: Delivery) -> Providers:
        if tracer_provider is not None and meter_provider is not None:
            return providers.Providers.adopt(tracer_provider, meter_provider)
        return providers.build(config, found, delivery, environ)

    return open_session(config, environ, SystemClock(), factory)


def open_session(
    config: Config,
    environ: Mapping[str, str],
    clock: Clock,
    factory: Factory,
    on_fault: Callable[[str, Exception], None] = lambda _place, _error: None,
) -> Session:
    """Open the session unless one is open; what `instrument()` and the test fixture share.

    Args:
        config: its settings.
        environ: what the environment tells of the process.
        clock: what durations and timestamps are read from.
        factory: makes the providers once the identity is settled.
        on_fault: told of each error inside rlotel, and where it was.

    Raises:
        SettingError: a setting cannot be used.
    """
    global _session
    from rlotel import endpoint, integrations
    from rlotel.opened import Session

    with _opening:
        if _session is not None:
            _session.hear(config)
            return _session
        # A worker was not asked: what it lacks, it lacks.
        frameworks = integrations.chosen(config.frameworks, strict=not launched(environ))
        endpoint.resolve_all(config, environ)  # a wrong one is said now, not in the middle of training
        opened = Session(config, environ, clock, factory, close_session, on_fault)
        if not config.enabled or sdk_disabled(environ):
            return opened
        _session = opened
        opened.start(frameworks)
        return opened


def uninstrument() -> None:
    """Put back everything that was patched, export one last time and stop.

    Takes at most 5 s; without an open session it does nothing.
    """
    if _session is not None:
        close_session(_session, None)


def close_session(session: Session, state: RunState | None) -> None:
    """End a session; `state` says how the run ended, None that it ended well."""
    global _session
    with _opening:
        if _session is not session:
            return
        _session = None
    session.end(state)
