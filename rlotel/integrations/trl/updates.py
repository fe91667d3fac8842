"""The update in an iteration: from its first forward pass to the optimizer's step, rollouts in between aside."""

from __future__ import annotations

from typing import Any

from rlotel.integrations.loops import Loops
from rlotel.integrations.trl.rollouts import Rollouts
from rlotel.phases import Phase
from rlotel.semconv import attributes as attr
from rlotel.words import TRAIN


class Updates:
    """The updates of one trainer.

    One function is not the whole of it: the trainer goes back and forth between passes over parts of the rollouts,
    which may be made in between, and then takes the optimizer's step.
    """

    def __init__(self, loops: Loops, rollouts: Rollouts) -> None:
        self._loops = loops
        self._rollouts = rollouts
        self._phase: Phase | None = None
        self._tokens: float | None = 0.0
        self._flops: float | None = 0.0

    def reset(self) -> None:
        """An iteration begins."""
        self.pause()
        self._tokens = self._flops = 0.0

    def forward(self, trainer: Any) -> None:
        """A pass over a part of the rollouts begins."""
        if self._phase is None and self._loops.current is not None:
            self._phase = self._loops.recorder.open_phase(
                TRAIN,
                span_attributes={attr.TRAIN_BATCH_SIZE.name: self._loops.setup.train_batch_size},
                inside=self._loops.current,
            )
        batch, parts = self._rollouts.batch, getattr(trainer.args, "steps_per_generation", None)
        self._tokens = _plus(self._tokens, batch.tokens, parts)
        self._flops = _plus(self._flops, batch.train_flops, parts)

    def pause(self, error: BaseException | None = None) -> None:
        """It goes on later in this iteration, or broke off."""
        phase, self._phase = self._phase, None
        if phase is not None:
            self._loops.recorder.close_phase(phase, error)

    def step(self, trainer: Any, tokens: float | None = None) -> None:
        """The optimizer took its step, or left it out because of values that were not finite.

        Args:
            trainer: whose it is.
            tokens: those that the update went through, where the trainer knows.
        """
        try:
            if self._phase is not None and self._loops.reports:
                skipped = trainer.accelerator.optimizer_step_was_skipped
                read = self._tokens if tokens is None else tokens
                self._loops.recorder.add(
                    self._phase,
                    steps=0 if skipped else 1,
                    tokens=None if read is None else round(read),
                    flops=self._flops,
                )
        finally:
            self.pause()


def _plus(sum_so_far: float | None, whole: float | None, parts: int | None) -> float | None:
    """One of equal parts more; rows are dealt out at random, so that only all parts together are exact."""
    return None if sum_so_far is None or whole is None or not parts else sum_so_far + whole / parts
