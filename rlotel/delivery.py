"""What of the telemetry arrives and what does not: said once a change, counted every time."""

from __future__ import annotations

import os
import random
import threading
import time
from typing import TYPE_CHECKING

from rlotel.causes import NotDelivered
from rlotel.errors import log
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlotel.endpoint import Destination
    from rlotel.otlp_variables import Signal
    from rlotel.semconv.types import Metric
    from rlotel.transports import Request, Response, Transport

_SHORTEST_ATTEMPT = 0.1
"""Seconds: less is not worth an attempt."""
_SAID = 20
"""Different words of servers that are logged; some put an id into each."""


def not_taken(response: Response | None) -> tuple[int, str]:
    """How many points or spans a server did not take of a request that it took, and what it had to say."""
    partial = getattr(response, "partial_success", None)
    rejected = getattr(partial, "rejected_data_points", 0) or getattr(partial, "rejected_spans", 0)
    return rejected, getattr(partial, "error_message", "")


class Delivery:
    """What becomes of each signal, in one process.

    Args:
        count: adds to a counter of ours; called in the threads that export.
    """

    def __init__(self, count: Callable[[Metric, float, Mapping[str, str]], None]) -> None:
        self._count = count
        self._failing: dict[Signal, bool] = {}
        self._partial: set[tuple[Signal, str]] = set()

    def arrived(self, destination: Destination) -> None:
        """One export arrived."""
        signal = destination.signal
        if self._failing.get(signal):
            log.warning("rlotel: %s reach %s again", signal, destination.describe())
        self._failing[signal] = False

    def lost(self, destination: Destination, cause: str) -> None:
        """One export did not arrive, and is not tried again."""
        signal = destination.signal
        self._count(m.RLOTEL_EXPORT_FAILURES, 1.0, {attr.RLOTEL_EXPORT_SIGNAL.name: signal})
        if not self._failing.get(signal):
            log.warning(
                "rlotel: %s do not reach %s (%s). Training is not affected; run `rlotel doctor` to see why.",
                signal,
                destination.describe(),
                cause,
            )
        self._failing[signal] = True

    def rejected(self, destination: Destination, rejected: int, words: str) -> None:
        """The server took an export but for some of it; or it took all and had something to say."""
        signal = destination.signal
        if rejected:
            self._count(m.RLOTEL_EXPORT_FAILURES, 1.0, {attr.RLOTEL_EXPORT_SIGNAL.name: signal})
        if (signal, words) not in self._partial and len(self._partial) < _SAID:
            self._partial.add((signal, words))
            log.warning(
                "rlotel: %s rejected %d %s: %s",
                destination.describe(),
                rejected,
                "points" if signal == "metrics" else "spans",
                words or "it did not say why",
            )

    def dropped(self, destination: Destination, spans: int) -> None:
        """Spans were made faster than they could be sent."""
        self._count(m.RLOTEL_EXPORT_FAILURES, 1.0, {attr.RLOTEL_EXPORT_SIGNAL.name: destination.signal})
        if (destination.signal, "dropped") not in self._partial:
            self._partial.add((destination.signal, "dropped"))
            log.warning("rlotel: %d spans were dropped: more are made than can be sent", spans)


class Sender:
    """Brings the requests of one signal to its destination, with retries, in the process that made it.

    Used by one thread, but for `hurry`.
    """

    def __init__(self, destination: Destination, transport: Transport, delivery: Delivery) -> None:
        self.destination = destination
        self.transport = transport
        self.delivery = delivery
        self._pid = os.getpid()
        self._hurry = threading.Event()
        # The SDK draws its jitter from the global generator, which belongs to the training.
        self._random = random.Random(os.urandom(8))  # noqa: S311 - not for secrets

    def hurry(self) -> None:
        """Make no more pauses: the process ends."""
        self._hurry.set()

    def send(self, request: Request, deadline: float) -> bool:
        """Deliver a request; what does not succeed is reported, never raised.

        Args:
            request: what to send.
            deadline: when to give up, on `time.monotonic`; the destination's timeout holds too.
        """
        if os.getpid() != self._pid:
            return False  # a forked child would send its parent's telemetry a second time
        deadline = min(deadline, time.monotonic() + self.destination.timeout)
        pause = 1.0
        while True:
            try:
                left = max(_SHORTEST_ATTEMPT, deadline - time.monotonic())
                self._settle(self._attempt(request, left))
            except NotDelivered as failure:  # noqa: PERF203 - an attempt is slower than a try
                wait = failure.retry_after
                if wait is None:
                    wait = pause * self._random.uniform(0.8, 1.2)
                if not self._may_retry(failure, time.monotonic() + wait, deadline):
                    self.delivery.lost(self.destination, failure.cause)
                    return False
                self._hurry.wait(wait)
                pause *= 2
            else:
                return True

    def _attempt(self, request: Request, timeout: float) -> Response | None:
        try:
            return self.transport.send(request, timeout)
        except NotDelivered:
            raise
        except Exception as error:  # such as a token that can't be renewed, from a provider of credentials
            raise NotDelivered(f"{type(error).__name__}: {error}") from error

    def _may_retry(self, failure: NotDelivered, when: float, deadline: float) -> bool:
        return failure.retry and when + _SHORTEST_ATTEMPT < deadline and not self._hurry.is_set()

    def _settle(self, response: Response | None) -> None:
        self.delivery.arrived(self.destination)
        rejected, words = not_taken(response)
        if rejected or words:
            self.delivery.rejected(self.destination, rejected, words)
