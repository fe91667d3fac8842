"""What a run's models and GPUs can do: read from disk and asked of Ray in a thread, once, beside training."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Protocol

from rlotel.derived import Hardware
from rlotel.flops import Architecture, UnknownArchitecture, peak_flops, read_config
from rlotel.recorder import Recorder

_SEVERAL_CARDS = frozenset({"H100", "H200"})
"""Accelerator types of Ray that cards with different peaks share."""


PLACE = "the models and GPUs of a run"

Asked = tuple["str | None", "str | None", bool]
"""The paths of policy and critic, and whether adapters are trained instead."""


class Described(Protocol):
    """What a configuration says of the models. A path is a folder, or a name on the Hugging Face Hub."""

    @property
    def model_path(self) -> str | None:
        """The policy's."""

    @property
    def critic_path(self) -> str | None:
        """The critic's."""

    @property
    def adapted(self) -> bool:
        """Whether adapters are trained instead of the models."""


class Models:
    """The architectures of the policy and the critic; None until they are known, or if they can't be."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.policy: Architecture | None = None
        self.critic: Architecture | None = None
        self._thread: threading.Thread | None = None
        self._asked: Asked | None = None

    def look_up(self, setup: Described) -> None:
        """Find out in the background, unless that is done or under way for these very models."""
        with self._recorder.faults.contain(PLACE):
            asked = setup.model_path, setup.critic_path, setup.adapted
            if asked == self._asked:
                return
            self._asked, self.policy, self.critic = asked, None, None
            self._thread = threading.Thread(target=self._find, args=asked, name="rlotel-models", daemon=True)
            self._thread.start()

    def wait(self, timeout: float) -> None:
        """Wait until it is found out; for tests."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _find(self, policy: str | None, critic: str | None, adapted: bool) -> None:
        with self._recorder.faults.contain(PLACE):
            if not adapted:
                found = _architecture(policy), _architecture(critic)
                if self._asked == (policy, critic, adapted):  # not, by now, for others
                    self.policy, self.critic = found
            if name := _gpu():
                self._recorder.equip(Hardware(peak_flops=peak_flops(name)))


def _architecture(path: str | None) -> Architecture | None:
    """From a folder, or from the local cache of the Hub: nothing is downloaded."""
    if path is None:
        return None
    folder = Path(path).expanduser()
    config = folder / "config.json" if folder.is_dir() else _cached(path)
    try:
        return None if config is None else read_config(config)
    except UnknownArchitecture:
        return None


def _cached(name: str) -> Path | None:
    hub = sys.modules.get("huggingface_hub")  # frameworks have it loaded
    try:
        found = None if hub is None else hub.try_to_load_from_cache(name, "config.json")
    except ValueError:  # no name that the Hub could have
        return None
    return Path(found) if isinstance(found, str) else None


def _gpu() -> str | None:
    """The name of the one kind of GPU that the cluster has; the trainer's own process often has none."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    prefix = "accelerator_type:"
    kinds = {
        name.removeprefix(prefix)
        for node in ray.nodes()
        if node["Alive"]
        for name in node["Resources"]
        if name.startswith(prefix)
    }
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    return _local_gpu() if kind in _SEVERAL_CARDS else kind


def _local_gpu() -> str | None:
    """The full name of a GPU of this machine, which is the cluster's one kind if it has any."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        return str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0)))
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
