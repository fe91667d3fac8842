"""What `with rlotel.train() as t:` gives: where the user tells counts, losses and health values.

Without an open session the one `NOTHING` handle is given, whose methods do nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlotel.errors import Faults, contained
from rlotel.phases import Interval, Loop, Phase
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from rlotel.semconv.types import Metric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlotel.recorder import Recorder

Number = float | int | None
"""Any number: NumPy, PyTorch and JAX scalars too, if they are not on an accelerator. None is left out."""


class Handle:
    """An open loop or phase. No method raises; each may be called from any thread."""

    __slots__ = ("_interval", "_recorder")

    def __init__(self, recorder: Recorder | None, interval: Interval | None) -> None:
        self._recorder = recorder
        self._interval = interval

    @property
    def faults(self) -> Faults:
        """Where errors of these methods go."""
        return self._recorder.faults if self._recorder else _NOWHERE

    @contained
    def add(
        self,
        *,
        samples: Number = None,
        episodes: Number = None,
        tokens: Number = None,
        prompt_tokens: Number = None,
        completion_tokens: Number = None,
        steps: Number = None,
        step_seconds: Number = None,
        truncated: Number = None,
        aborted: Number = None,
        bytes: Number = None,  # noqa: A002 - the word the reader expects
        flops: Number = None,
        memory_bytes: Number = None,
    ) -> None:
        """Count what this phase did since the last call; may be called any number of times.

        Args:
            samples: sample phase: training rows that were made, without padding.
            episodes: sample phase: episodes that were finished.
            tokens: sample phase: tokens, where prompt and completion are not told apart. Train phase: prompt and
                completion tokens that were forwarded, once per pass, without padding.
            prompt_tokens: sample phase: tokens of prompts.
            completion_tokens: sample phase: tokens that were generated.
            steps: train phase: optimizer steps. Sample phase: environment steps.
            step_seconds: sample phase: seconds those environment steps took together.
            truncated: sample phase: how many of the samples hit the length limit; 0 says it is known to be none.
            aborted: sample phase: how many of the samples were given up.
            bytes: sync phase and checkpoints: bytes that were moved.
            memory_bytes: sample phase: bytes that decoding had to read from GPU memory, over all GPUs; see
                `rlotel.flops.decode_bytes`.
            flops: any phase: model FLOPs of its forward and backward passes, over all GPUs.
        """
        if isinstance(self._interval, Loop):
            raise TypeError("a loop counts nothing itself: call add() on what its sample, train or sync gave")
        if self._recorder is not None and isinstance(self._interval, Phase):
            self._recorder.add(
                self._interval,
                samples=samples,
                episodes=episodes,
                tokens=tokens,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                steps=steps,
                step_seconds=step_seconds,
                truncated=truncated,
                aborted=aborted,
                bytes=bytes,
                flops=flops,
                memory_bytes=memory_bytes,
            )

    @contained
    def loss(self, **by_type: Number) -> None:
        """Set losses by type: `policy`, `value`, `kl_divergence`, `entropy` or a name of one's own."""
        for kind, value in by_type.items():
            self._set(m.TRAIN_LOSS, value, {attr.LOSS_TYPE.name: kind})

    @contained
    def set(
        self,
        *,
        reward: Number = None,
        episode_length: Number = None,
        episode_turns: Number = None,
        kl_divergence: Number = None,
        kl_reference: str = "reference",
        entropy: Number = None,
        grad_norm: Number = None,
        learning_rate: Number = None,
        clip_ratio: Number = None,
        zero_variance_ratio: Number = None,
        staleness: Number = None,
    ) -> None:
        """Set the health values of this iteration. One that is not finite removes its gauge and is counted.

        Args:
            reward: mean reward (return) of the episodes.
            episode_length: mean length: response tokens for language, environment steps for control.
            episode_turns: mean number of turns.
            kl_divergence: mean KL divergence of the policy from `kl_reference`.
            kl_reference: `reference`, `old_policy` or `rollout`.
            entropy: mean entropy of the policy.
            grad_norm: norm of the gradient before clipping.
            learning_rate: of the policy's optimizer.
            clip_ratio: share of tokens (0 to 1) whose ratio was clipped.
            zero_variance_ratio: share of groups (0 to 1) whose rewards are all the same.
            staleness: policy versions between the one that sampled and the one that is trained.
        """
        values = {
            m.ENVIRONMENT_REWARD_MEAN: reward,
            m.ENVIRONMENT_EPISODE_LENGTH_MEAN: episode_length,
            m.ENVIRONMENT_EPISODE_TURNS_MEAN: episode_turns,
            m.ENTROPY: entropy,
            m.GRAD_NORM: grad_norm,
            m.LEARNING_RATE: learning_rate,
            m.TRAIN_CLIP_RATIO: clip_ratio,
            m.REWARD_ZERO_VARIANCE_RATIO: zero_variance_ratio,
            m.SAMPLE_STALENESS: staleness,
        }
        for metric, value in values.items():
            self._set(metric, value)
        self._set(m.KL_DIVERGENCE, kl_divergence, {attr.KL_REFERENCE.name: kl_reference})

    @contained
    def score(self, name: str, value: Number) -> None:
        """Set one result of an evaluation, by any name; it never mixes with the values of training."""
        self._set(m.EVALUATION_SCORE, value, {attr.EVALUATION_NAME.name: name})

    def _set(self, metric: Metric, value: Number, attributes: Mapping[str, str] | None = None) -> None:
        if value is not None and self._recorder is not None:
            self._recorder.set(metric, value, attributes or {}, of=self._interval)


_NOWHERE = Faults()
NOTHING = Handle(None, None)
