"""The GPU collector of a process: one process of each node reads its GPUs, in a thread that nobody waits for.

Exporting only looks at the last sample. A call of the driver that never returns holds up that thread and nothing
else: the samples grow old and vanish, and one line in the log says why.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from rlotel.collectors.election import Node
from rlotel.collectors.keeper import Keeper
from rlotel.collectors.visible import VISIBLE, assigned
from rlotel.config import Config
from rlotel.errors import log
from rlotel.instruments import Attributes
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.types import Metric

STALE = 5.0
"""Seconds after which a sample says nothing about the present any more."""
STUCK = 30.0
"""Seconds that one reading may take before it is worth a line."""
STOP_WAIT = 0.5
"""Seconds that the end of a session waits for a reading that is under way."""

ROLES = frozenset({attr.Role.TRAINER.value, attr.Role.ROLLOUT.value, attr.Role.SHARED.value})
METRICS = tuple(metric for metric in m.ALL if metric.owner == "node")

_collectors: weakref.WeakSet[GpuCollector] = weakref.WeakSet()
_registered: list[bool] = []


class GpuCollector:
    """Reads the node's GPUs, if this process is the one of its run's on the node to do so.

    Args:
        recorder: of the session.
        config: the session's settings.
        node: where the run's processes on this node agree on who reads.
        announce: called in the collector's thread when this process has GPUs to report.
    """

    def __init__(
        self,
        recorder: Recorder,
        config: Config,
        node: Node,
        announce: Callable[[], None],
    ) -> None:
        self._recorder = recorder
        self._new_keeper = partial(Keeper, recorder, config, node, announce)
        self._thread: threading.Thread | None = None
        self._forget()
        for metric in METRICS:
            recorder.instruments.watch(metric, partial(self._values, metric))
        _collectors.add(self)
        if not _registered and hasattr(os, "register_at_fork"):
            _registered.append(True)  # it cannot be undone, so it is done once
            os.register_at_fork(after_in_child=_in_child)

    def start(self) -> None:
        """This process has something to export, so it may be the one that reads. Does not wait."""
        with self._starting, self._recorder.faults.contain("collectors.gpu"):
            if self._thread is None and not self._over:
                thread = threading.Thread(target=self._run, name="rlotel-gpu", daemon=True)
                thread.start()
                self._thread = thread

    def role(self, role: str, visible_devices: str | None = None) -> None:
        """Tell what this process does with its GPUs, for the rest of the run. Any thread; does not wait.

        Args:
            role: trainer, rollout or shared.
            visible_devices: its GPUs as in `CUDA_VISIBLE_DEVICES`; by default that variable's, and Ray's word.

        Raises:
            ValueError: there is no such role.
        """
        if role not in ROLES:
            raise ValueError(f"the role of a GPU is one of {', '.join(sorted(ROLES))}, not {role!r}")
        told = assigned(os.environ) if visible_devices is None else {VISIBLE: visible_devices}
        if (role, told) not in self._roles:
            self._roles.append((role, told))
            self._keeper.want(role, told)
            self.start()
            self._wake.set()

    def loop_began(self) -> None:
        """The run's loop is here, and so MFU is: find out what it is measured against."""
        self._keeper.loop = True
        self._wake.set()

    def stop(self) -> None:
        """End; waits half a second at most for a reading that is under way."""
        with self._starting:
            self._over = True
        self._wake.set()
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join(STOP_WAIT)
        self._keeper.release()

    def _forget(self) -> None:
        self._starting = threading.RLock()  # a gc callback or signal handler may come in while its thread has it
        self._wake = threading.Event()
        self._over = False
        self._thread = None
        self._roles: list[tuple[str, Mapping[str, str]]] = []
        self._keeper: Keeper = self._new_keeper()
        self._told_stuck = False

    def _forked(self) -> None:
        """In a forked child: what was begun is its parent's."""
        self._keeper.disown()
        self._forget()

    def _run(self) -> None:
        keeper, wake = self._keeper, self._wake
        while not self._over and not keeper.gave_up:
            wake.wait(keeper.turn())
            wake.clear()
        keeper.close()
        if keeper.gave_up:
            keeper.release()

    def _values(self, metric: Metric) -> Iterable[tuple[float, Attributes]]:
        """What an export finds. In the exporting thread."""
        since, sample = self._keeper.busy_since, self._keeper.sample
        if since is not None and time.monotonic() - since > STUCK and not self._told_stuck:
            self._told_stuck = True
            log.warning(
                "rlotel: the NVIDIA driver has not answered for %.0f s, so GPU metrics are absent; training and "
                "exporting go on",
                STUCK,
            )
        if sample is None or self._recorder.now() - sample.at > STALE:
            return ()
        return sample.points.get(metric, ())


def _in_child() -> None:
    for collector in list(_collectors):
        collector._forked()  # noqa: SLF001 - of this module
