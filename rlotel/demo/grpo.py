"""Group Relative Policy Optimization (DeepSeekMath, 2024) for the demo's policy.

A completion's advantage is its reward relative to the other completions of the same prompt; the loss is the
clipped ratio to the policy that sampled, plus the distance (KL, the k3 estimator) to a frozen reference.
"""

from dataclasses import dataclass

import numpy as np

from rlotel.demo.optimizer import Adam
from rlotel.demo.policy import Floats, Policy, Rollouts, Weights
from rlotel.demo.settings import Settings

# The estimator is exponential in how much likelier the reference finds a token, so one rare token would
# drown the batch; beyond this many nats it counts as this many and teaches nothing.
KL_CAP = 10.0


@dataclass(frozen=True)
class Advantages:
    """Group-relative advantages.

    Attributes:
        values: One a sample; the mean of a group is 0, its standard deviation 1.
        zero_variance_ratio: Share of groups whose rewards are all equal, so that they teach nothing.
    """

    values: Floats
    zero_variance_ratio: float


@dataclass(frozen=True)
class Loss:
    """One minibatch's loss and what is known of it; means over completion tokens, entropies in nats."""

    total: float
    policy: float
    kl_divergence: float
    entropy: float
    clip_ratio: float


@dataclass(frozen=True)
class Update:
    """What an update did: means over its minibatches, and counts.

    Attributes:
        loss: The means of the losses.
        grad_norm: Mean norm of the gradients before clipping.
        steps: Optimizer steps taken.
        skipped_steps: Optimizer steps left out because the gradient was not finite.
        tokens: Prompt and completion tokens forwarded, once per pass.
        flops: Model FLOPs of forward and backward.
    """

    loss: Loss
    grad_norm: float
    steps: int
    skipped_steps: int
    tokens: int
    flops: float


def advantages(rewards: Floats, group_size: int) -> Advantages:
    """Compares each reward with those of its group.

    Args:
        rewards: One a sample, ``group_size`` in a row for each prompt.
        group_size: Completions per prompt.
    """
    groups = rewards.reshape(-1, group_size)
    centred = groups - groups.mean(axis=1, keepdims=True)
    deviation = groups.std(axis=1, keepdims=True)
    # By equality: the deviation of equal numbers may come out as 1e-17, and dividing by it makes noise.
    equal = (groups == groups[:, :1]).all(axis=1, keepdims=True)
    values = np.where(equal, 0.0, centred / np.where(equal, 1.0, deviation))
    return Advantages(values.ravel(), float(equal.mean()))


def loss(
    policy: Policy, rollouts: Rollouts, advantage: Floats, reference_logprobs: Floats, settings: Settings
) -> tuple[Loss, Weights]:
    """The GRPO loss of one minibatch and its gradient by the policy's parameters.

    Args:
        policy: The policy being trained.
        rollouts: The minibatch, with the log-probabilities it was sampled with.
        advantage: One a sample.
        reference_logprobs: The reference's log-probabilities of the same tokens.
        settings: Clip range and KL coefficient.
    """
    mask = rollouts.mask
    seen = policy.forward(rollouts.contexts())
    rows, chosen = np.arange(len(seen.logprobs)), rollouts.completions[mask]
    logprob = seen.logprobs[rows, chosen]
    weight = np.broadcast_to(advantage[:, None], mask.shape)[mask]
    ratio = np.exp(logprob - rollouts.logprobs[mask])
    surrogate = weight * ratio
    bounded = weight * np.clip(ratio, 1 - settings.clip, 1 + settings.clip)
    is_clipped = bounded < surrogate
    difference = reference_logprobs[mask] - logprob
    estimate = np.exp(difference) - difference - 1
    kl = np.minimum(estimate, KL_CAP)

    policy_loss = -float(np.minimum(surrogate, bounded).mean())
    kl_divergence = float(kl.mean())
    probability = np.exp(seen.logprobs)
    result = Loss(
        total=policy_loss + settings.kl_coefficient * kl_divergence,
        policy=policy_loss,
        kl_divergence=kl_divergence,
        entropy=-float((probability * seen.logprobs).sum(axis=1).mean()),
        clip_ratio=float(is_clipped.mean()),
    )
    policy_slope = np.where(is_clipped, 0.0, -surrogate)
    kl_slope = np.where(estimate > KL_CAP, 0.0, 1 - np.exp(difference))
    by_logprob = (policy_slope + settings.kl_coefficient * kl_slope) / len(rows)
    by_logits = -probability * by_logprob[:, None]
    by_logits[rows, chosen] += by_logprob
    return result, policy.backward(seen, by_logits)


def update(
    optimizer: Adam,
    rollouts: Rollouts,
    advantage: Floats,
    reference_logprobs: Floats,
    settings: Settings,
    rng: np.random.Generator,
) -> Update:
    """Trains the optimizer's policy on one iteration's rollouts: several passes of several steps.

    Args:
        optimizer: Holds the policy.
        rollouts: What the policy sampled.
        advantage: One a sample.
        reference_logprobs: The frozen reference's log-probabilities of the same tokens.
        settings: Passes, minibatches, clip range, KL coefficient.
        rng: Shuffles the minibatches.
    """
    policy = optimizer.policy
    losses: list[Loss] = []
    norms: list[float] = []
    steps = 0
    for _ in range(settings.epochs):
        for rows in np.array_split(rng.permutation(rollouts.samples), settings.minibatches):
            found, gradient = loss(
                policy, rollouts.select(rows), advantage[rows], reference_logprobs[rows], settings
            )
            norm, moved = optimizer.step(gradient)
            losses.append(found)
            norms.append(norm)
            steps += moved
    return Update(
        loss=Loss(*(float(np.mean(column)) for column in zip(*map(_values, losses), strict=True))),
        grad_norm=float(np.mean(norms)),
        steps=steps,
        skipped_steps=len(norms) - steps,
        tokens=settings.epochs * (rollouts.prompt_tokens + rollouts.completion_tokens),
        flops=settings.epochs * policy.flops(rollouts.completion_tokens, train=True),
    )


def _values(found: Loss) -> tuple[float, ...]:
    return found.total, found.policy, found.kl_divergence, found.entropy, found.clip_ratio
