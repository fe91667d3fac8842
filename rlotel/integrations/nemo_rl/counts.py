"""From the rollouts and updates of an iteration to its samples, tokens, optimizer steps and model FLOPs.

Rollouts that are made under the trainer's eyes are counted as they are. Where others make them (asynchronous
trainers, the TransferQueue), they are counted when they are trained on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlotel.derived import Hardware
from rlotel.flops import generation_flops, train_flops
from rlotel.integrations.models import Models
from rlotel.integrations.nemo_rl.iterations import Iteration, Iterations
from rlotel.patching import Call
from rlotel.phases import Phase
from rlotel.recorder import Recorder
from rlotel.semconv.attributes import Role
from rlotel.words import SAMPLE, TRAIN

GENERATED = ("mean_gen_tokens_per_sample",)
TURNS = ("avg_turns_per_sample", "turns_per_sample/mean")
"""Keys of means over rollouts; NeMo Gym has one of its own."""


@dataclass
class _Tally:
    """What is known of one iteration so far."""

    counted: bool = False
    """Whether its rollouts were counted as they were made."""
    reports: int = 0
    """How often rollouts came through a TransferQueue."""
    generated: int | None = None
    """Tokens that those of the last report generated."""
    rows: int = 0
    """Rows that it trains on."""
    tokens: int = 0
    """Tokens of those rows."""
    steps: int = 0
    """Optimizer steps of the policy."""
    logged: Mapping[str, float] = field(default_factory=dict)
    """What was logged of its rollouts."""


class Counts:
    """What is counted in the process that trains."""

    def __init__(self, recorder: Recorder, iterations: Iterations, models: Models) -> None:
        self._recorder = recorder
        self._iterations = iterations
        self._models = models
        self._asked: int | None = None
        self._tally = _Tally()
        iterations.ending.append(self._finish)

    @property
    def steps(self) -> int:
        """Optimizer steps of the policy in this iteration so far."""
        return self._tally.steps

    # Rollouts.

    def rolled_out(self, batch: Mapping[str, Any], metrics: Mapping[str, Any]) -> None:
        """Rollouts came back from a call in this process."""
        phase = self._iterations.running(SAMPLE)
        if phase is None:
            return
        self._tally.counted = True
        lengths = [_lengths(messages) for messages in batch["message_log"]]
        given, generated = [one for one, _ in lengths], [other for _, other in lengths]
        self._tell(phase, len(lengths), sum(given), sum(generated), metrics)
        if self._models.policy is not None:
            self._recorder.add(phase, flops=generation_flops(self._models.policy, given, generated).total)

    def asked(self, call: Call) -> None:
        """Before `prepare_step` of a policy with a TransferQueue: how many rollouts are about to be made."""
        self._asked = int(call.arguments["num_samples"])

    def logged(self, metrics: Mapping[str, float]) -> None:
        """Results of an iteration were logged, or, before, those of its rollouts alone."""
        self._tally.logged = metrics
        rows, phase = self._asked, self._iterations.running(SAMPLE)
        if rows is not None and phase is not None:
            self._asked = None
            self._tally.reports += 1
            self._tally.generated = _total(rows, metrics, GENERATED)
            self._tell(phase, rows, None, self._tally.generated, metrics)

    def _tell(
        self, phase: Phase, rows: int, given: int | None, generated: int | None, metrics: Mapping[str, Any]
    ) -> None:
        self._recorder.add(
            phase,
            samples=rows,
            episodes=rows,
            prompt_tokens=given,
            completion_tokens=generated,
            steps=_total(rows, metrics, TURNS),
        )

    # Updates.

    def updated(self, phase: Phase, lengths: list[int], result: Mapping[str, Any], flops: float | None) -> None:
        """A model was updated with all rows of an iteration, once."""
        tally = self._tally
        if not tally.rows:  # a further epoch is a further pass, not further rows
            tally.rows, tally.tokens = len(lengths), sum(lengths)
        self._recorder.add(phase, tokens=sum(lengths), flops=flops)
        self._stepped(phase, _size(result["loss"]), result)

    def accumulated(self, call: Call) -> None:
        """After the single controller had gradients of some rows added up."""
        phase = self._iterations.running(TRAIN, Role.ACTOR.value)
        if phase is not None:
            lengths = lengths_of(call)
            self._tally.rows += len(lengths)
            self._tally.tokens += sum(lengths)
            policy = self._models.policy
            flops = None if policy is None else train_flops(policy, lengths).total
            self._recorder.add(phase, tokens=sum(lengths), flops=flops)

    def stepped(self, call: Call) -> None:
        """After the single controller had the optimizer take its step."""
        phase = self._iterations.running(TRAIN, Role.ACTOR.value)
        if phase is not None:
            if self._models.policy is None:
                self._recorder.add(phase, flops=call.result.get("total_flops"))
            self._stepped(phase, 1, call.result)

    def _stepped(self, phase: Phase, steps: int, result: Mapping[str, Any]) -> None:
        self._recorder.add(phase, steps=steps)
        if self._iterations.running(TRAIN, Role.ACTOR.value) is phase:
            self._tally.steps += steps
        ranks, peak = result.get("num_ranks"), result.get("theoretical_tflops")
        if ranks and peak:
            self._recorder.equip(Hardware(peak_flops=peak / ranks * 1e12, gpus_of={TRAIN: int(ranks)}))

    # The end.

    def _finish(self, iteration: Iteration) -> None:
        """Count what only the whole iteration tells."""
        tally, self._tally, self._asked = self._tally, _Tally(), None
        phase = iteration.latest.get((SAMPLE, None))
        if phase is None or tally.counted:
            return
        if tally.reports == 1 and tally.generated is not None and tally.tokens >= tally.generated:
            self._recorder.add(phase, prompt_tokens=tally.tokens - tally.generated)
        elif not tally.reports and tally.rows:
            generated = _total(tally.rows, tally.logged, GENERATED)
            if generated is None or generated > tally.tokens:
                self._recorder.add(phase, tokens=tally.tokens)
                self._tell(phase, tally.rows, None, None, tally.logged)
            else:
                self._tell(phase, tally.rows, tally.tokens - generated, generated, tally.logged)


def _lengths(messages: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Tokens that one rollout was given (its prompt, and what environments said), and those that it generated."""
    given = generated = 0
    for message in messages:
        tokens = len(message["token_ids"])
        if "generation_logprobs" in message:
            generated += tokens
        else:
            given += tokens
    return given, generated


def _total(rows: int, metrics: Mapping[str, Any], means: Iterable[str]) -> int | None:
    """Of what is logged as a mean over rows. A total that is logged is one over all groups from 0.7 on only."""
    mean = next((metrics[key] for key in means if key in metrics), None)
    return None if mean is None else round(mean * rows)


def lengths_of(call: Call) -> list[int]:
    """Tokens of the rows that a pass is made with: a batch, or what a TransferQueue knows of one."""
    data: Any = call.args[0] if call.args else call.kwargs.get("data", call.kwargs.get("meta"))
    lengths = getattr(data, "sequence_lengths", None)
    return [int(length) for length in (data["input_lengths"].tolist() if lengths is None else lengths)]


def _size(values: Any) -> int:
    return int(values.numel()) if hasattr(values, "numel") else 1
