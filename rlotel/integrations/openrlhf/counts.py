"""What is counted of an iteration: its rollouts as they come to be trained on, its updates as they are done."""

from __future__ import annotations

from rlotel.flops import forward_flops, generation_flops, train_flops
from rlotel.integrations.models import Models
from rlotel.integrations.openrlhf import rows
from rlotel.integrations.openrlhf.groups import Key
from rlotel.integrations.openrlhf.rows import Rows
from rlotel.integrations.openrlhf.setup import Setup
from rlotel.patching import Call
from rlotel.phases import Phase
from rlotel.recorder import Recorder
from rlotel.semconv import metrics as m
from rlotel.semconv.attributes import Role
from rlotel.words import SAMPLE, TRAIN


class Counts:
    """The numbers of a trainer that follow from the rollouts it trains on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._versions = rows.Versions()
        self._left: dict[Key, int] = {}
        """Rows of an optimizer step that the next iteration completes."""
        self._rows: Rows | None = None
        self.models = Models(recorder)
        self.setup = Setup()
        self.sample: Phase | None = None
        """What brought the rollouts of the open iteration."""

    def begin(self) -> None:
        """An iteration begins."""
        self.sample = self._rows = None

    def brought(self, call: Call) -> None:
        """Rollouts are there to be trained on: the argument of `make_experience_batch`."""
        rollouts = call.arguments["rollout_samples"]
        self._rows = found = rows.read(rollouts)
        number = len(rollouts)
        if found is None:
            if self.sample is not None:
                self._recorder.add(self.sample, samples=number, episodes=number)
            return
        if self.sample is not None:
            self._recorder.add(
                self.sample,
                samples=number,
                episodes=number,
                steps=found.turns,
                prompt_tokens=sum(found.prompts),
                completion_tokens=sum(found.completions),
            )
        same = found.same_reward(int(self.setup.get("rollout.n_samples_per_prompt") or 1))
        if same is not None:
            self._recorder.set(m.REWARD_ZERO_VARIANCE_RATIO, same)
        if found.turns is not None and number:
            self._recorder.set(m.ENVIRONMENT_EPISODE_TURNS_MEAN, found.turns / number)
        if found.made and self.setup.one_policy_each:
            self._recorder.set(m.SAMPLE_STALENESS, self._versions.staleness(found.made))

    def trained(self, phases: dict[Key, Phase]) -> None:
        """They were, in these phases."""
        found = self._rows
        if found is None:
            return
        epochs, batch = int(self.setup.get("train.max_epochs") or 1), int(self.setup.get("train.batch_size") or 0)
        known = self._flops(found, epochs)
        if self.sample is not None:
            self._recorder.add(self.sample, flops=known.get((SAMPLE, None)))
        trains = {key for key in phases if key[0] == TRAIN}
        for key, phase in phases.items():
            if key not in trains:
                self._recorder.add(phase, flops=known.get(key))
                continue
            self._recorder.add(
                phase,
                steps=self._steps(key, len(found.prompts), epochs, batch) if batch else None,
                tokens=sum(found.lengths) * epochs,
                # Those of one model would be taken over the GPUs of both.
                flops=known[key] if trains <= known.keys() else None,
            )

    def synced(self, phase: Phase) -> None:
        """New weights went to the engines, in a phase that ends now."""
        self._versions.sent(rows.middle(phase, self._recorder.now()))

    def _steps(self, key: Key, number: int, epochs: int, batch: int) -> int:
        """Optimizer steps that so many more rows complete."""
        if self.setup.get("train.dynamic_batch_enable"):
            return number // batch * epochs  # what is too little for one more step is not trained on
        steps, self._left[key] = divmod(self._left.get(key, 0) + number * epochs, batch)
        return steps

    def _flops(self, found: Rows, epochs: int) -> dict[Key, float]:
        """Model FLOPs of each phase, of those that are known."""
        known: dict[Key, float] = {}
        lengths = found.lengths
        if (policy := self.models.policy) is not None:
            forward = forward_flops(policy, lengths).total
            known[SAMPLE, None] = generation_flops(policy, found.prompts, found.completions).total
            known["logprob", Role.ACTOR.value] = known["ref_logprob", Role.REFERENCE.value] = forward
            known[TRAIN, Role.ACTOR.value] = train_flops(policy, lengths).total * epochs
        if (critic := self.models.critic) is not None:
            known["value", Role.CRITIC.value] = forward_flops(critic, lengths, logits=0).total
            known[TRAIN, Role.CRITIC.value] = train_flops(critic, lengths, logits=0).total * epochs
        return known
