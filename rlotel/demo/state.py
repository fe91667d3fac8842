"""What the demo's loop works on: the policy in its three roles, its optimizer, and where chance comes from."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rlotel.demo.checkpoints import Checkpoints
from rlotel.demo.optimizer import Adam
from rlotel.demo.policy import Floats, Policy, Rollouts
from rlotel.demo.settings import Settings


@dataclass
class Run:
    """The state of a training run.

    Attributes:
        settings: its sizes and rates.
        policy: what is trained.
        sampler: the copy that makes rollouts; it has the weights of the last sync.
        reference: the untrained policy, kept.
        optimizer: moves `policy`.
        rng: all chance of the training.
        verify: gives each completion a reward.
        checkpoints: where they are kept.
        iteration: the one that runs or ran last, from 1.
    """

    settings: Settings
    policy: Policy
    sampler: Policy
    reference: Policy
    optimizer: Adam
    rng: np.random.Generator
    verify: Callable[[Rollouts], Floats]
    checkpoints: Checkpoints
    iteration: int = 0


def start(settings: Settings, seed: int, verify: Callable[[Rollouts], Floats], checkpoints: Checkpoints) -> Run:
    """An untrained policy, and all that is needed to train it. The same seed gives the same run, to the bit."""
    rng = np.random.default_rng(seed)
    policy = Policy(rng, max_tokens=settings.max_tokens, hidden=settings.hidden)
    optimizer = Adam(policy, learning_rate=settings.learning_rate, max_grad_norm=settings.max_grad_norm)
    return Run(settings, policy, policy.copy(), policy.copy(), optimizer, rng, verify, checkpoints)
