"""What this process is in its run: the one that launched it, the one with the loop, or a worker.

Every metric of the model has one owner, so that nothing is counted twice. A phase in a worker is a span in the
loop's trace and an observation of `rl.worker.duration`; the process that runs the loop reports all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from opentelemetry.util.types import AttributeValue

Facts = Mapping[str, AttributeValue]


class Process:
    """One process of a run.

    Args:
        launcher: whether the run was launched here: then its status is reported from here.
        rank: its number among the ranks that run the same program; rank 0 reports what all of them know.
        attempt: what tells one launch of the run from the next.
        handover: makes the environment of a process of this run that does not inherit this one's.
        flush: exports what was recorded within the seconds it is given; says whether all of it arrived.
    """

    def __init__(
        self,
        launcher: bool,
        rank: int,
        attempt: str,
        handover: Callable[[], dict[str, str]],
        flush: Callable[[float], bool],
    ) -> None:
        self.launcher = launcher
        self.rank = rank
        """Set by who knows better than the environment, such as in ranks that were forked."""
        self.attempt = attempt
        self.handover = handover
        self.flush = flush
        self.loop: Literal["here", "elsewhere"] | None = None
        """Where the run's loop is, as far as this process knows."""
        self.on_role: Callable[[str, str | None], None] = lambda _role, _devices: None
        """Told what this process does with its GPUs."""
        self._reads: list[Callable[[], Facts]] = []
        self._endings: list[Callable[[], None]] = []

    @property
    def worker(self) -> bool:
        """Whether other processes have launched the run and have its loop."""
        return not self.launcher and self.loop != "here"

    def forked(self) -> None:
        """This is a forked child now: launcher and loop are its parent's."""
        self.launcher = False
        self.loop = None
        self._endings.clear()

    def use_gpus(self, role: str, visible_devices: str | None = None) -> None:
        """Tell what this process does with its GPUs, so that their series say it. Any thread; does not wait.

        Args:
            role: trainer, rollout or shared; that of a GPU is fixed for the run, and two different ones share it.
            visible_devices: the GPUs, as in `CUDA_VISIBLE_DEVICES`. By default those of that variable, or those
                that Ray assigned to this process.

        Raises:
            ValueError: there is no such role.
        """
        self.on_role(role, visible_devices)

    def describe(self, read: Callable[[], Facts]) -> None:
        """Let `read` tell facts for the Resource, by attribute name, when exporting starts. It must not wait."""
        self._reads.append(read)

    def when_ending(self, tell: Callable[[], None]) -> None:
        """Let `tell` say what is still to be recorded, before the last export; it must neither raise nor wait.

        Called in a thread of ours, and again if the process survives a SIGTERM.
        """
        self._endings.append(tell)

    def ending(self) -> None:
        """All of those tell now."""
        for tell in self._endings:
            tell()

    def facts(self) -> dict[str, AttributeValue]:
        """What all of those tell now."""
        return {name: value for read in self._reads for name, value in read().items()}
