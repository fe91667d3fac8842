"""What can go wrong in training, made to happen on request, so that it can be seen in the telemetry."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rlotel.demo.policy import Floats, Rollouts
from rlotel.demo.sandbox import SandboxTimeout
from rlotel.demo.state import Run

STALL_SECONDS = 5.0
"""How long a stalled verifier hangs: long enough to see ages grow over several exports."""


@dataclass(frozen=True)
class Mishaps:
    """The iterations in which the verifier misbehaves, each once, also when an iteration is trained again.

    Attributes:
        fail_at: it gives no rewards in time.
        nan_at: one reward is not a number, which spoils the loss of its minibatches.
        stall_at: it hangs for `STALL_SECONDS`, then answers.
    """

    fail_at: int | None = None
    nan_at: int | None = None
    stall_at: int | None = None

    def befall(self, run: Run) -> None:
        """Put a verifier that misbehaves in the place of the run's own."""
        run.verify = self._verifier(run, run.verify)

    def _verifier(self, run: Run, verify: Callable[[Rollouts], Floats]) -> Callable[[Rollouts], Floats]:
        due = {name: at for name, at in vars(self).items() if at is not None}

        def flaky(rollouts: Rollouts) -> Floats:
            now = [name for name, at in due.items() if at == run.iteration]
            for name in now:
                del due[name]
            if "stall_at" in now:
                time.sleep(STALL_SECONDS)
            if "fail_at" in now:
                raise SandboxTimeout("no rewards in time, as asked for with --fail-at")
            rewards = verify(rollouts)
            if "nan_at" in now:
                rewards[0] = np.nan
            return rewards

        return flaky
