"""Counting the episodes that end, where the environments say so: on a GPU, which is never waited for."""

from __future__ import annotations

import sys
from typing import Any


class Episodes:
    """How many episodes of a vector environment ended.

    The flags of a step are summed up on their device. A sum is sent over while the trainer goes on, and read once
    it is here: by then the trainer has read its losses, behind which the sum was queued.
    """

    def __init__(self) -> None:
        self._sum: Any = None
        self._sent: list[tuple[Any, Any]] = []

    def add(self, dones: Any) -> None:
        """A step has ended these, as a tensor of flags or numbers."""
        ended = dones.count_nonzero()
        self._sum = ended if self._sum is None else self._sum + ended

    def send(self) -> None:
        """An iteration's steps are over: let their sum come here. On other devices than GPUs it stays unknown."""
        total, self._sum = self._sum, None
        if total is None:
            return
        if total.is_cuda:
            cuda = sys.modules["torch"].cuda
            here = total.to("cpu", non_blocking=True)
            copied = cuda.Event()
            copied.record(cuda.current_stream(total.device))
            self._sent.append((here, copied))
        elif total.is_cpu:
            self._sent.append((total, None))

    def arrived(self) -> int | None:
        """The sums that have come since the last time; None if none has."""
        here = [sent for sent in self._sent if sent[1] is None or sent[1].query()]
        if not here:
            return None
        self._sent = [sent for sent in self._sent if all(sent is not one for one in here)]
        return sum(int(total) for total, _ in here)
