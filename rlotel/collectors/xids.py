"""Errors that the driver reports by number (XID): by NVML's events, or from the kernel's log where those are not.

An event is one error that happened after we began to listen.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from rlotel.collectors.devices import Device, short_bus
from rlotel.collectors.nvml import TIMEOUT, CallFailed, Meaning, Nvml, text

KERNEL_LOG = Path("/dev/kmsg")

_XID = 0x8
"""The bit of this kind of event."""
_MOST_AT_ONCE = 1000
"""Events that are taken in one go; a driver that floods us does not keep the sampler from reading."""
_PAUSE = 60.0
"""Seconds without listening after the events have failed: persistent errors must not be asked for in a circle."""
_LINE = re.compile(r"NVRM: Xid \(PCI:(?P<bus>[0-9a-fA-F:.]+)\): (?P<code>\d+)")
_RECORD = 8192


class Xid(NamedTuple):
    """One error."""

    code: int
    uuid: str


class LoggedXid(NamedTuple):
    """One error as the kernel's log has it."""

    code: int
    bus: str
    """Where on the PCI bus the GPU is, as `b4:00`."""


def from_log(line: str) -> LoggedXid | None:
    """Read a line of the kernel's log; None if it tells of no such error."""
    match = _LINE.search(line)
    return match and LoggedXid(int(match["code"]), short_bus(match["bus"]))


class Xids:
    """Listens to all GPUs of the node at once.

    Args:
        nvml: the open library.
        devices: the GPUs.
        kernel_log: read where the driver gives no events.
    """

    def __init__(self, nvml: Nvml, devices: Iterable[Device], kernel_log: Path = KERNEL_LOG) -> None:
        self._nvml = nvml
        self._devices = list(devices)
        self._log_path = kernel_log
        self._log: int | None = None
        self._set: Any = None
        self._resume = 0.0
        self.heard: set[str] = set()
        """UUIDs of the GPUs whose errors are heard of."""
        self._listen()

    def take(self, now: float) -> list[Xid]:
        """All errors since the last call. Does not wait.

        Raises:
            CallFailed: the driver is gone.
        """
        if self._log is not None:
            return self._from_log()
        if self._set is None:
            if not self._resume or now < self._resume:
                return []
            self._listen()
        found: list[Xid] = []
        try:
            while self._set is not None and len(found) < _MOST_AT_ONCE:
                event = self._nvml.call("nvmlEventSetWait", self._set, 0)
                # Events of other kinds come too, and some without a number.
                if event.eventType == _XID and event.eventData:
                    uuid = text(self._nvml.call("nvmlDeviceGetUUID", event.device))
                    found.append(Xid(int(event.eventData), uuid))
        except CallFailed as failure:
            self._judge(failure, now)
        return found

    def close(self) -> None:
        """Stop listening."""
        if self._log is not None:
            os.close(self._log)
            self._log = None
        if self._set is not None:
            with contextlib.suppress(CallFailed):  # with the driver the set is gone as well
                self._nvml.call("nvmlEventSetFree", self._set)
            self._set = None

    def _judge(self, failure: CallFailed, now: float) -> None:
        if failure.code == TIMEOUT:
            return  # there are no more
        if failure.meaning is Meaning.DOWN:
            raise failure
        self.close()
        self._resume = now + _PAUSE

    def _listen(self) -> None:
        self.heard = set()
        self._set = self._try("nvmlEventSetCreate")
        for device in self._devices if self._set is not None else ():
            if self._try("nvmlDeviceRegisterEvents", device.handle, _XID, self._set, value=True):
                self.heard.add(device.id.uuid)
        if not self.heard:
            self.close()
            self._open_log()

    def _try(self, call: str, *args: object, value: object = None) -> Any:
        """The value of a call, or `value` where a call that went well has none; None if it failed."""
        try:
            return self._nvml.call(call, *args) or value
        except CallFailed as failure:
            if failure.meaning is Meaning.DOWN:
                raise
            return None

    def _open_log(self) -> None:
        try:
            self._log = os.open(self._log_path, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._log, 0, os.SEEK_END)
        except OSError:
            self._log = None  # most containers must not read it
        else:
            self.heard = {device.id.uuid for device in self._devices if device.bus}

    def _from_log(self) -> list[Xid]:
        buses = {device.bus: device.id.uuid for device in self._devices if device.bus}
        found: list[Xid] = []
        for _ in range(_MOST_AT_ONCE):
            try:
                record = os.read(self._log, _RECORD) if self._log is not None else b""
            except BrokenPipeError:
                continue  # records were overwritten before we read them
            except OSError:
                break  # there are no more
            if not record:
                break
            if (xid := from_log(record.decode("utf-8", "replace"))) and (uuid := buses.get(xid.bus)):
                found.append(Xid(xid.code, uuid))
        return found
