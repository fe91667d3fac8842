"""Where an import goes: to the endpoint of the settings, into a capture file, or nowhere."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlotel import endpoint
from rlotel.capture import CaptureFile, own_folder
from rlotel.config import Config
from rlotel.delivery import Delivery, Sender
from rlotel.transports import FileTransport, Transport, connect

if TYPE_CHECKING:
    from rlotel.endpoint import Destination
    from rlotel.transports import Request


class NotTaken(Exception):
    """A request did not arrive; nothing more is sent."""


class _Report(Delivery):
    """What became of the requests, to be told at the end rather than logged."""

    def __init__(self) -> None:
        super().__init__(lambda _metric, _value, _attributes: None)
        self.cause = ""
        self.refused = 0
        self.words = ""

    def lost(self, destination: Destination, cause: str) -> None:
        self.cause = f"{destination.describe()}: {cause}"

    def rejected(self, destination: Destination, rejected: int, words: str) -> None:
        self.refused += rejected
        self.words = self.words or f"{destination.describe()}: {words or 'it did not say why'}"


class Outlet:
    """Takes requests one by one, each until it has arrived.

    Args:
        config: the settings.
        environ: the environment, for the variables of OpenTelemetry.
        run_id: what a capture file of nobody's choice is named by.

    Raises:
        SettingError: where to send to cannot be understood.
    """

    def __init__(self, config: Config, environ: Mapping[str, str], run_id: str) -> None:
        self._report = _Report()
        self.arrived_until = -math.inf
        """The time of the latest that arrived."""
        self.destinations = endpoint.resolve_all(config, environ)
        captured = any(destination.kind == "capture" for destination in self.destinations)
        self.capture = _capture(config, run_id) if captured else None
        self._senders: dict[str, Sender] = {}
        for destination in self.destinations:
            if (transport := self._transport(destination)) is not None:
                self._senders[destination.signal] = Sender(destination, transport, self._report)

    @property
    def remote(self) -> bool:
        """Whether anything leaves this machine's disk."""
        return any(destination.kind == "otlp" for destination in self.destinations)

    @property
    def refused(self) -> tuple[int, str]:
        """How many points and spans were not taken of requests that arrived, and why."""
        return self._report.refused, self._report.words

    def send(self, request: Request, time: float) -> None:
        """Send a request.

        Raises:
            NotTaken: it did not arrive.
        """
        signal = "traces" if hasattr(request, "resource_spans") else "metrics"
        sender = self._senders.get(signal)
        if sender is None:
            return
        if not sender.send(request, math.inf):
            raise NotTaken(self._report.cause)
        self.arrived_until = max(self.arrived_until, time)

    def close(self) -> None:
        """Close what is open."""
        for sender in self._senders.values():
            sender.transport.close()

    def _transport(self, destination: Destination) -> Transport | None:
        if destination.kind == "off":
            return None
        if self.capture is not None and destination.kind == "capture":
            return FileTransport(self.capture)
        return connect(destination)


def _capture(config: Config, run_id: str) -> CaptureFile:
    if config.capture:
        path = Path(config.capture).expanduser()
    else:
        safe = "".join(character if character.isalnum() or character in "-_." else "_" for character in run_id)
        path = own_folder() / f"{safe[:100]}-import-{os.getpid()}.jsonl"
    return CaptureFile(path, sys.maxsize)
