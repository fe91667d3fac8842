"""Rollouts as a trainer makes and scores them: how many they are, their tools, and what they cost to compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlotel.flops import Architecture, forward_flops, generation_flops, train_flops
from rlotel.integrations.loops import Loops
from rlotel.integrations.trl.tables import LOGPROB, REF_LOGPROB, ROLLOUT, TOOL
from rlotel.patching import Call
from rlotel.semconv import metrics as m
from rlotel.words import SAMPLE


@dataclass(frozen=True)
class Batch:
    """Rollouts that were made together, of all ranks."""

    tokens: int | None = None
    """Of their prompts, completions and tools, all of which an update goes through."""
    train_flops: float | None = None
    forward_flops: float | None = None


class Rollouts:
    """The rollouts of one trainer."""

    def __init__(self, loops: Loops) -> None:
        self._loops = loops
        self.architecture: Architecture | None = None
        self.batch = Batch()
        """The latest ones; updates go on with them until there are others."""
        self._tools: Call | None = None
        self._passes: int | None = None
        """Passes over the latest ones since they were made; None while they are not being scored."""

    # Making them.

    def begin(self, call: Call) -> None:
        """Before `_generate`."""
        call.notes["seen"] = call.instance.state.num_input_tokens_seen
        self._loops.open(ROLLOUT, call)

    def made(self, call: Call) -> None:
        """After it."""
        try:
            if call.notes.get("phase") is not None:
                self._count(call.instance, call.result, call.notes["seen"])
        finally:
            self._loops.shut(call)

    def _count(self, trainer: Any, result: Any, seen: int) -> None:
        prompts, completions = [[len(ids) for ids in rows] for rows in result[:2]]
        ranks, rows = trainer.accelerator.num_processes, len(completions)
        counted = trainer.state.num_input_tokens_seen - seen
        mean = (trainer._metrics["train"].get("completions/mean_length") or [None])[-1]  # noqa: SLF001
        generated = None if mean is None else round(mean * rows * ranks)
        turns = _turns(trainer, result) if ranks == 1 else None
        self._loops.add(
            ROLLOUT.phase,
            samples=rows * ranks,
            episodes=rows * ranks,
            prompt_tokens=counted - generated if generated is not None and counted >= generated else None,
            completion_tokens=generated,
            steps=turns,
        )
        if turns is not None and self._loops.reports:
            self._loops.recorder.set(m.ENVIRONMENT_EPISODE_TURNS_MEAN, turns / rows)
        self._measure(prompts, completions, ranks, counted if ranks > 1 and not _has_tools(trainer) else None)

    def _measure(self, prompts: list[int], completions: list[int], ranks: int, counted: int | None) -> None:
        """What passes over these rollouts cost; a token of another rank's as much as one of this rank's."""
        lengths = [prompt + completion for prompt, completion in zip(prompts, completions, strict=True)]
        tokens = sum(lengths) if ranks == 1 else counted
        if self.architecture is None or not tokens:
            self.batch = Batch(tokens)
            return
        share = tokens / sum(lengths)
        self.batch = Batch(
            tokens,
            train_flops(self.architecture, lengths).total * share,
            forward_flops(self.architecture, lengths).total * share,
        )
        made = generation_flops(self.architecture, prompts, completions).total * share
        self._loops.add(ROLLOUT.phase, flops=made)

    def arrived(self, trainer: Any) -> float | None:
        """The optimizer took a step on rollouts that another process made.

        Returns:
            Tokens that the update went through: once through those that several rollouts have in common.
        """
        samples, tokens, read = (
            getattr(trainer, f"_step_{what}", None) for what in ("samples", "trained_tokens", "forward_tokens")
        )
        self._loops.add(SAMPLE, samples=None if samples is None else round(samples), completion_tokens=tokens)
        return None if read is None else float(read)

    # Their tools.

    def begin_tools(self, call: Call) -> None:
        """Before `_tool_call_loop`, which lets the model go on between calls of tools."""
        self._tools = call
        self._loops.open(TOOL, call)

    def end_tools(self, call: Call) -> None:
        """After it."""
        self._tools = None
        self._loops.shut(call)

    def begin_turn(self, _call: Call) -> None:
        """Before `_generate_single_turn`: no tool is called meanwhile."""
        if self._tools is not None:
            self._loops.shut(self._tools)

    def end_turn(self, _call: Call) -> None:
        """After it."""
        if self._tools is not None:
            self._loops.open(TOOL, self._tools)

    # Scoring them.

    def begin_scoring(self, _call: Call) -> None:
        """Before `_generate_and_score_completions`."""
        self._passes = 0

    def end_scoring(self, _call: Call) -> None:
        """After it."""
        self._passes = None

    def begin_pass(self, call: Call) -> None:
        """Before `_get_per_token_logps_and_entropies`, which an update also calls, and then is a part of it."""
        if self._passes is None:
            return
        model = call.args[0] if call.args else call.kwargs.get("model")
        timed = REF_LOGPROB if _is_reference(call.instance, model, self._passes) else LOGPROB
        self._passes += 1
        if self._loops.open(timed, call) is not None:
            self._loops.add(timed.phase, timed.role, flops=self.batch.forward_flops)


def _has_tools(trainer: Any) -> bool:
    return bool(getattr(trainer, "tools", None))


def _turns(trainer: Any, result: Any) -> int | None:
    """How often the model spoke in these rollouts; None where it speaks once in each."""
    if not _has_tools(trainer):
        return None
    conversations = next((part for part in result[2:] if _is_conversations(part)), ())
    return sum(message["role"] == "assistant" for messages in conversations for message in messages) or None


def _is_conversations(part: Any) -> bool:
    return isinstance(part, list) and bool(part) and isinstance(part[0], list) and isinstance(part[0][0], dict)


def _is_reference(trainer: Any, model: Any, earlier: int) -> bool:
    """Whether a pass over rollouts is that of the reference: a model of its own, or this one without adapters.

    With adapters both passes are of one model. That of the policy comes first, and is left out where the update is
    on the very policy that made the rollouts.
    """
    reference = getattr(trainer, "ref_model", None)
    if reference is not None:
        return model is reference
    if not getattr(trainer, "beta", 0):
        return False
    if earlier or not hasattr(trainer, "importance_sampling_level"):  # RLOO always has both
        return bool(earlier)
    args = trainer.args
    on_policy = args.gradient_accumulation_steps % (args.steps_per_generation * trainer.num_iterations) == 0
    corrected = trainer.use_vllm and getattr(trainer, "vllm_importance_sampling_correction", False)
    return bool(on_policy and not corrected)
