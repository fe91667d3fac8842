"""The demo's training loop: GRPO with rlotel's calls around its phases. This is the file to copy from."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import rlotel
from rlotel.demo import grpo, task
from rlotel.demo.policy import Floats, Rollouts
from rlotel.demo.sandbox import SandboxError
from rlotel.demo.state import Run

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Iteration:
    """What one finished iteration came to."""

    number: int
    reward: float
    update: grpo.Update


def train(run: Run, *, restart_after: int | None = None) -> Iterator[Iteration]:
    """Train to the last iteration; one whose rewards cannot be had is given up, and training goes on.

    Args:
        run: what is trained.
        restart_after: the iteration after which to go back to the last checkpoint, once.
    """
    while run.iteration < run.settings.iterations:
        run.iteration += 1
        try:
            yield iterate(run)
        except SandboxError as error:
            log.warning("iteration %d is given up: %s", run.iteration, error)
        if run.iteration == restart_after:
            restart_after = None
            restore(run)


def iterate(run: Run) -> Iteration:
    """One iteration: the root of one trace, with the phases as its children."""
    with rlotel.loop(iteration=run.iteration):
        rollouts = sample(run)
        rewards = score(run, rollouts)
        reference = ref_logprob(run, rollouts)
        found = update(run, rollouts, rewards, reference)
        sync(run)
        if run.iteration % run.checkpoints.every == 0:
            save(run)
            evaluate(run)
    return Iteration(run.iteration, float(rewards.mean()), found)


def sample(run: Run) -> Rollouts:
    """The sampler completes prompts, several times each."""
    size = run.settings
    with rlotel.sample(batch_size=size.samples) as phase:
        rollouts = run.sampler.sample(task.prompts(size.prompts, run.rng), size.group_size, run.rng)
        phase.add(samples=rollouts.samples, episodes=rollouts.samples, truncated=rollouts.truncated.sum())
        phase.add(prompt_tokens=rollouts.prompt_tokens, completion_tokens=rollouts.completion_tokens)
        phase.add(flops=run.sampler.flops(rollouts.completion_tokens))
        phase.set(episode_length=rollouts.lengths.mean())
    return rollouts


def score(run: Run, rollouts: Rollouts) -> Floats:
    """The verifier, in its sandbox, says what each completion is worth."""
    with rlotel.reward(sandbox="local") as phase:
        rewards = run.verify(rollouts)
        phase.set(reward=rewards.mean())
    return rewards


def ref_logprob(run: Run, rollouts: Rollouts) -> Floats:
    """How likely the frozen reference finds the same tokens: a phase with a name of one's own choice."""
    with rlotel.phase("ref_logprob") as phase:
        logprobs = run.reference.logprobs(rollouts)
        phase.add(flops=run.reference.flops(rollouts.completion_tokens))
    return logprobs


def update(run: Run, rollouts: Rollouts, rewards: Floats, reference: Floats) -> grpo.Update:
    """The learner's optimizer steps."""
    with rlotel.train(batch_size=rollouts.samples) as phase:
        advantage = grpo.advantages(rewards, run.settings.group_size)
        found = grpo.update(run.optimizer, rollouts, advantage.values, reference, run.settings, run.rng)
        phase.add(steps=found.steps, tokens=found.tokens, flops=found.flops)
        phase.loss(policy=found.loss.policy, kl_divergence=run.settings.kl_coefficient * found.loss.kl_divergence)
        phase.set(kl_divergence=found.loss.kl_divergence, entropy=found.loss.entropy)
        phase.set(grad_norm=found.grad_norm, learning_rate=run.optimizer.learning_rate, staleness=0)
        phase.set(clip_ratio=found.loss.clip_ratio, zero_variance_ratio=advantage.zero_variance_ratio)
    return found


def sync(run: Run) -> None:
    """The sampler gets the learner's new weights."""
    with rlotel.sync(source="learner", destination="sampler") as phase:
        phase.add(bytes=run.sampler.load(run.policy.weights()))


def evaluate(run: Run) -> None:
    """Prompts of its own, drawn with chance of its own: training goes the same way without it."""
    rng = np.random.default_rng(run.iteration)
    with rlotel.phase("evaluate") as phase:
        rollouts = run.sampler.sample(task.prompts(run.settings.prompts, rng), 1, rng)
        phase.score("exact_match", (run.verify(rollouts) == 1.0).mean())


def save(run: Run) -> None:
    """Everything that a restart needs goes to the disk."""
    with rlotel.checkpoint("save", tier="local_disk", step=run.iteration) as phase:
        phase.add(bytes=run.checkpoints.save(run.iteration, run.policy, run.optimizer, run.rng))


def restore(run: Run) -> None:
    """Back to the last checkpoint: what came after it is trained again."""
    with rlotel.checkpoint("restore", tier="local_disk") as phase:
        run.iteration, size = run.checkpoints.restore(run.policy, run.optimizer, run.rng)
        phase.add(bytes=size)
        run.sampler.load(run.policy.weights())
