"""One metric or span sent for a trial, as telemetry is sent, and what became of it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from rlotel import causes
from rlotel.capture import own_folder
from rlotel.causes import NotDelivered
from rlotel.config import Config
from rlotel.delivery import not_taken
from rlotel.doctor.bounded import bounded
from rlotel.doctor.listener import Spoken, spoken
from rlotel.doctor.message import Plain, message
from rlotel.endpoint import Destination
from rlotel.otlp_variables import Signal
from rlotel.transports import connect

SECONDS = 5.0
"""How long one trial may take."""
_GREETING_SECONDS = 1.0

Outcome = Literal["arrived", "rejected", "failed", "kept", "off"]
Stage = Literal["name", "connection", "answer", ""]


@dataclass(frozen=True)
class Trial:
    """What became of one trial."""

    signal: Signal
    place: str
    outcome: Outcome
    cause: str = ""
    """Why it did not arrive; or what the server had to say although it did."""
    failed_at: Stage = ""
    """What did not come: the address of a name, a connection, or a good answer."""
    proxy: str = ""
    """What stands between here and there, if anything."""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether telemetry goes where it is meant to go."""
        return self.outcome in {"arrived", "kept", "off"}


def attempt(destination: Destination, config: Config, resource: Mapping[str, Plain]) -> Trial:
    """Try one destination: send to a collector, look whether a capture file could be written.

    Args:
        destination: where to.
        config: the settings.
        resource: the Resource to send, since a backend may refuse for what it lacks.
    """
    if destination.kind == "otlp":
        return _send(destination, resource)
    if destination.kind == "capture":
        return _keep(destination, config)
    outcome: Outcome = "off" if destination.kind == "off" else "kept"
    return Trial(destination.signal, destination.describe(), outcome)


def _keep(destination: Destination, config: Config) -> Trial:
    path = Path(config.capture).expanduser() if config.capture else own_folder() / "capture.jsonl"
    place = str(path if config.capture else path.parent)
    folder = next((parent for parent in path.absolute().parents if parent.exists()), path)
    if folder.is_dir() and os.access(folder, os.W_OK) and not path.is_dir():
        return Trial(destination.signal, place, "kept")
    return Trial(destination.signal, place, "failed", "it cannot be written")


def _send(destination: Destination, resource: Mapping[str, Plain]) -> Trial:
    started = time.monotonic()
    signal, place, proxy = destination.signal, destination.describe(), _proxy(destination)
    deadline = started + SECONDS
    stages: list[Stage] = []

    def send() -> tuple[int, str]:
        address = _address(destination)
        if address is not None and not proxy:
            stages.append("name")
            socket.getaddrinfo(*address)
            stages.append("connection")
            socket.create_connection(address, max(0.1, deadline - time.monotonic())).close()
        stages.append("answer")
        transport = connect(destination)
        try:
            return not_taken(transport.send(message(signal, resource), max(0.1, deadline - time.monotonic())))
        finally:
            transport.close()

    try:
        rejected, words = bounded(send, SECONDS + 0.5)
    except (NotDelivered, OSError) as error:
        stage = stages[-1] if stages else ""
        cause = _mismatch(destination, stage) or _cause(error, stage)
        return Trial(signal, place, "failed", cause, stage, proxy, time.monotonic() - started)
    outcome: Outcome = "rejected" if rejected else "arrived"
    cause = " ".join(words.split()) or ("it did not say why" if rejected else "")
    return Trial(signal, place, outcome, cause, "answer" if rejected else "", proxy, time.monotonic() - started)


def _cause(error: NotDelivered | OSError, stage: Stage) -> str:
    if isinstance(error, NotDelivered):
        return error.cause
    if isinstance(error, TimeoutError):
        return {
            "name": f"the look-up of its name (DNS) is not answered within {SECONDS:.0f} s",
            "connection": f"no connection within {SECONDS:.0f} s: a firewall drops it, or nobody has this address",
        }.get(stage, f"no answer within {SECONDS:.0f} s")
    return causes.of_connection(error, SECONDS)


def _mismatch(destination: Destination, stage: Stage) -> str:
    """What the server speaks, if that is not what the destination says; only asked after a failure."""
    address = _address(destination)
    if stage != "answer" or address is None:
        return ""
    language = spoken(*address, _GREETING_SECONDS)
    if language == "TLS" and destination.insecure:
        return "it expects TLS, and was spoken to in plaintext: use https://"
    if language in {"HTTP/1", "HTTP/2"} and not destination.insecure:
        return "it speaks plaintext, not TLS: use http://"
    return _WRONG_PROTOCOL.get((destination.protocol, language), "")


_WRONG_PROTOCOL: Mapping[tuple[str, Spoken | None], str] = {
    ("grpc", "HTTP/1"): (
        "it speaks HTTP/1, not gRPC: set RLOTEL_PROTOCOL=http/protobuf, or use the port for gRPC, mostly 4317"
    ),
    ("http/protobuf", "HTTP/2"): (
        "it speaks gRPC, not HTTP/1: set RLOTEL_PROTOCOL=grpc, or use the port for HTTP, mostly 4318"
    ),
}


def _address(destination: Destination) -> tuple[str, int] | None:
    """Host and port, None where gRPC finds them in its own way (`dns:///…`, `unix:…`)."""
    parts = urlsplit(destination.url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return None
    return parts.hostname, parts.port or (80 if parts.scheme == "http" else 443)


def _proxy(destination: Destination) -> str:
    """The proxy that the environment puts before this destination, without its password."""
    from requests.utils import get_environ_proxies, select_proxy, should_bypass_proxies

    if destination.protocol == "http/protobuf":
        found = select_proxy(destination.url, get_environ_proxies(destination.url))
    elif should_bypass_proxies(destination.url, None):
        found = None
    else:
        found = next(filter(None, map(os.environ.get, ("grpc_proxy", "https_proxy", "http_proxy"))), None)
    return found.rpartition("@")[2] if found else ""
