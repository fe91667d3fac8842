"""What the collector's thread does, turn by turn: stand for election, open the driver, read, see who does what."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rlotel.collectors.crosscheck import CrossCheck
from rlotel.collectors.election import Held, Node, both
from rlotel.collectors.fleet import Fleet
from rlotel.collectors.nvml import CallFailed, Nvml
from rlotel.collectors.sampling import Sample, Sampler
from rlotel.collectors.visible import visible
from rlotel.config import Config
from rlotel.errors import log
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m

PERIOD = 1.0
"""Seconds between two readings."""
ELECTION = 2.0
"""Seconds between two attempts of a process to become the one that reads."""
LOOK = 5.0
"""Seconds between two looks at what the node's processes do."""
FIRST_RETRY, LAST_RETRY, NEVER_THERE = 5.0, 60.0, 300.0
"""Seconds until a driver is tried again: one that went away, sooner at first; and one that never was there."""

SIGNS_OF_A_GPU = (Path("/proc/driver/nvidia"), Path("/dev/nvidiactl"))


class Keeper:
    """One process's part in reading the GPUs of its node. Arguments as for the collector."""

    def __init__(
        self,
        recorder: Recorder,
        config: Config,
        node: Node,
        announce: Callable[[], None],
    ) -> None:
        self.sample: Sample | None = None
        """What was read last, if this process reads."""
        self.busy_since: float | None = None
        """When the present turn began, by `time.monotonic()`; None between turns."""
        self.gave_up = False
        """Whether there is no way to read GPUs here, now or later."""
        self.loop = False
        """Whether the run's loop is in this process."""
        self._recorder = recorder
        self._config = config
        self._node = node
        self._announce = announce
        self._sampler = Sampler(Nvml(), recorder.now, self._failed, config.peak_flops)
        self._fleet = Fleet(recorder, os.environ)
        self._check = CrossCheck(recorder)
        self._wanted: list[tuple[str, Mapping[str, str]]] = []
        self._claims: list[Held] = []
        self._preference: Held | None = None
        self._roles: dict[str, str] = {}
        self._looked_at: float | None = None
        self._seat: Held | None = None
        self._released = False
        self._open = False
        self._ever_open = False
        self._retry_at = 0.0
        self._delay = FIRST_RETRY
        self._said: set[str] = set()

    def want(self, role: str, told: Mapping[str, str]) -> None:
        """Let the others on the node know, in the next turn, what this process does with which GPUs."""
        self._wanted.append((role, told))

    def turn(self) -> float:
        """Do what there is to do now; never raises.

        Returns:
            The seconds to wait until the next turn.
        """
        self.busy_since = time.monotonic()
        try:
            with self._recorder.faults.contain("collectors.gpu"):
                return self._turn()
        finally:
            self.busy_since = None
        return ELECTION

    def close(self) -> None:
        """Let go of the driver. In the thread of the turns."""
        self.sample = None
        if self._open:
            self._open = False
            self._sampler.close()

    def release(self) -> None:
        """Let go of the seat and of the claims: another process may have them. In any thread."""
        self._released = True
        self.sample = None
        for held in self._held():
            held.release(remove=True)
        self._node.leave()

    def disown(self) -> None:
        """In a forked child: leave seat and claims to the parent."""
        for held in self._held():
            held.disown()

    def _held(self) -> list[Held]:
        return [held for held in (*self._claims, self._preference, self._seat) if held is not None]

    def _turn(self) -> float:
        if self._released or self._recorder.now() < self._retry_at:
            return ELECTION
        elected = self._elected()
        if not elected and not self._wanted and not (self.loop and not self._fleet.looked):
            self._fleet.explain()
            return ELECTION
        if (not self._open and not self._opened()) or self._released:
            return ELECTION
        self._claim()
        if self.loop:
            self._fleet.look(self._sampler.gpus)
            self._fleet.explain()
        if elected:
            self._read()
            return PERIOD
        self.close()
        return ELECTION

    def _elected(self) -> bool:
        """Whether this process reads: who comes first does, until one with the run's loop wants to."""
        try:
            if self.loop and self._preference is None:
                self._preference = self._node.prefer()
            if not self.loop and self._node.prefers():
                self._stand_back()
            elif self._seat is None:
                self._seat = self._node.elect()
        except FileNotFoundError:
            return False  # the last one has just left, and taken the folder along
        except OSError as error:
            if os.environ.get("LOCAL_RANK", "0") != "0":
                return False
            self._say(f"processes cannot agree on who reads the GPUs, so this one does: {error}")
            return True
        return self._seat is not None

    def _stand_back(self) -> None:
        if self._seat is not None:
            self.close()
            self._seat.release(remove=True)
            self._seat = None

    # The driver.

    def _opened(self) -> bool:
        try:
            self._sampler.open()
        except ModuleNotFoundError:
            self.gave_up = True
            self._absent("this process cannot read GPUs: nvidia-ml-py is missing; pip install 'rlotel[gpu]'")
        except CallFailed as failure:
            self._sampler.close()
            self._away(failure)
        else:
            if self._ever_open and self._delay > FIRST_RETRY:
                log.warning("rlotel: the NVIDIA driver is back; GPU metrics go on")
            self._open = self._ever_open = True
            self._delay = FIRST_RETRY
        return self._open

    def _away(self, failure: CallFailed) -> None:
        if not self._ever_open:
            self._absent(f"there are no GPU metrics from this node: {failure}")
            self._retry_at = self._recorder.now() + NEVER_THERE
            return
        if self._delay == FIRST_RETRY:
            log.warning("rlotel: the NVIDIA driver is gone (%s): GPU metrics are absent until it is back", failure)
        self._retry_at = self._recorder.now() + self._delay
        self._delay = min(2 * self._delay, LAST_RETRY)

    def _absent(self, text: str) -> None:
        """One line; a warning only where GPUs were asked for, or seem to be."""
        asked = "gpu" in self._config.sources or any(sign.exists() for sign in SIGNS_OF_A_GPU)
        self._say(text, logging.WARNING if asked else logging.INFO)

    # A reading.

    def _read(self) -> None:
        self._look_at_roles()
        try:
            sample = self._sampler.read()
        except CallFailed as failure:
            self.close()
            if not self._released:
                self._away(failure)
            return
        if self._released:
            return  # a call came back after the session had ended without waiting for it
        before, self.sample = self.sample, sample
        if sample.points:
            self._announce()
        self._recorder.instruments.record(m.RLOTEL_GPU_POLL_DURATION, sample.seconds)
        self._check.look(before, sample, self._fleet.used(self._sampler.gpus, self._roles))

    def _failed(self, error_type: str) -> None:
        self._recorder.instruments.add(m.RLOTEL_GPU_POLL_FAILURES, 1, {attr.ERROR_TYPE.name: error_type})

    # Who does what.

    def _claim(self) -> None:
        while self._wanted:
            role, told = self._wanted[0]
            mine = visible(self._sampler.gpus, told)
            if mine:
                uuids = tuple(gpu.uuid for gpu in mine)
                try:
                    claim = self._node.claim(role, uuids)
                except OSError as error:
                    self._say(f"the role of this process's GPUs cannot be told to the others: {error}")
                else:
                    self._claims += [claim] if claim else []
            elif mine is None:
                self._say("which GPUs this process uses is unknown; set CUDA_DEVICE_ORDER=PCI_BUS_ID")
            self._wanted.pop(0)

    def _look_at_roles(self) -> None:
        now = self._recorder.now()
        if self._looked_at is not None and now - self._looked_at < LOOK:
            return
        self._looked_at = now
        for uuid, role in self._node.roles().items():
            self._roles[uuid] = both(self._roles.get(uuid), role)  # what was known stays, for the rest of the run
        self._sampler.assign(self._roles)

    def _say(self, text: str, level: int = logging.WARNING) -> None:
        if text not in self._said:
            self._said.add(text)
            log.log(level, "rlotel: %s", text)
