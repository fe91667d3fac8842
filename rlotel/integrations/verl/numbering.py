"""Which iteration it is that a timer begins: the timer itself does not know.

The trainer counts, in `global_steps`. Where it could not be met (fully-async's is sent to its actor by value) the
iterations are counted from what verl logs, and from 1.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

GLOBAL_STEP = "training/global_step"


class Numbering:
    """The numbers of the trainer's iterations, in this process."""

    def __init__(self) -> None:
        self._trainer: weakref.ref[Any] | None = None
        self._next = 1
        self._timed: dict[str, float] | None = None

    def meet(self, trainer: object) -> None:
        """This is the trainer."""
        self._trainer = weakref.ref(trainer)

    def begin(self, timed: dict[str, float]) -> tuple[int, bool]:
        """The number of the iteration that begins, and whether it is the last one again.

        DAPO goes round again for want of rollouts: with the same number, or with the timings of before.
        """
        last = self._next - 1
        number = self._global_steps()
        again = timed is self._timed if number is None else number == last
        number = (last if again else self._next) if number is None else number
        self._next, self._timed = number + 1, timed
        return number, again

    def logged(self, data: Mapping[str, Any]) -> None:
        """Verl logs which iteration it was."""
        if (step := data.get(GLOBAL_STEP)) is not None:
            self._next = max(self._next, int(step) + 1)

    def _global_steps(self) -> int | None:
        trainer = None if self._trainer is None else self._trainer()
        steps = getattr(trainer, "global_steps", None)
        return steps if isinstance(steps, int) else None
