"""From the rows of an iteration to its samples, tokens, optimizer steps and model FLOPs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rlotel.flops import forward_flops, generation_flops, train_flops
from rlotel.integrations.models import Models
from rlotel.integrations.verl.setup import Setup
from rlotel.phases import Phase
from rlotel.recorder import Recorder
from rlotel.semconv.attributes import Role
from rlotel.words import SAMPLE, TRAIN

Key = tuple[str, str | None]
"""A phase's name and role."""
_CRITIC = Role.CRITIC.value


@dataclass(frozen=True)
class Rows:
    """The rollouts that one iteration trained on."""

    prompts: tuple[int, ...]
    """Tokens of each row's prompt."""
    responses: tuple[int, ...]
    """Tokens of each row's response, those of tools included."""
    episodes: int
    padding: int = 0
    """Further rows, made up so that every GPU has as many: they take optimizer steps, and are not counted."""

    @property
    def lengths(self) -> list[int]:
        """Tokens of each row."""
        return [prompt + response for prompt, response in zip(self.prompts, self.responses, strict=True)]


def whole(lengths: Iterable[float]) -> tuple[int, ...]:
    """Lengths as verl has them, which are floats."""
    return tuple(int(length) for length in lengths)


def tell(recorder: Recorder, phases: Mapping[Key, Phase], rows: Rows, setup: Setup, models: Models) -> None:
    """Add what follows from `rows` to the phases of an iteration."""
    flops = _flops(phases, rows, models)
    for key, phase in phases.items():
        name, role = key
        if name == SAMPLE:
            recorder.add(
                phase,
                samples=len(rows.prompts),
                episodes=rows.episodes,
                prompt_tokens=sum(rows.prompts),
                completion_tokens=sum(rows.responses),
                flops=flops.get(key),
            )
        elif name == TRAIN:
            updates = setup.updates("critic" if role == _CRITIC else "actor_rollout_ref.actor")
            if updates is not None:
                once = flops.get(key)
                recorder.add(
                    phase,
                    steps=updates.steps(len(rows.prompts) + rows.padding),
                    tokens=sum(rows.lengths) * updates.epochs,
                    flops=None if once is None else once * updates.epochs,
                )
        elif key in flops:
            recorder.add(phase, flops=flops[key])


def _flops(phases: Mapping[Key, Phase], rows: Rows, models: Models) -> dict[Key, int]:
    """Model FLOPs of one pass of each phase, of those that are known."""
    known: dict[Key, int] = {}
    lengths = rows.lengths
    if (policy := models.policy) is not None:
        forward = forward_flops(policy, lengths).total
        known[SAMPLE, None] = generation_flops(policy, rows.prompts, rows.responses).total
        known["logprob", Role.ACTOR.value] = known["ref_logprob", Role.REFERENCE.value] = forward
        known[TRAIN, Role.ACTOR.value] = train_flops(policy, lengths).total
    if (critic := models.critic) is not None:
        known["value", _CRITIC] = forward_flops(critic, lengths, logits=0).total
        known[TRAIN, _CRITIC] = train_flops(critic, lengths, logits=0).total
    if not known.keys() >= {key for key in phases if key[0] == TRAIN}:
        # The phase is that of both models: the FLOPs of one would be taken over the time of both.
        known = {key: flops for key, flops in known.items() if key[0] != TRAIN}
    return known
