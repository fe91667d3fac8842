"""What the demo trains with; the defaults learn the task in about half a minute of one CPU core."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Sizes and rates of a run.

    Attributes:
        iterations: Rounds of sample, reward, train and sync.
        prompts: Prompts per iteration.
        group_size: Completions per prompt.
        max_tokens: Longest completion, the end mark included.
        hidden: Width of the policy's hidden layers.
        epochs: Passes over the rollouts of an iteration.
        minibatches: Optimizer steps per pass.
        learning_rate: Adam's step size.
        clip: How far the ratio to the sampling policy may leave 1 and still teach.
        kl_coefficient: Weight of the distance to the reference. The reference is the untrained, nearly
            uniform policy, so this is also what keeps the policy trying other answers.
        max_grad_norm: Gradients longer than this are shortened to it.
    """

    iterations: int = 40
    prompts: int = 256
    group_size: int = 16
    max_tokens: int = 4
    hidden: int = 256
    epochs: int = 4
    minibatches: int = 4
    learning_rate: float = 3e-3
    clip: float = 0.3
    kl_coefficient: float = 0.1
    max_grad_norm: float = 1.0

    @property
    def samples(self) -> int:
        """Completions per iteration."""
        return self.prompts * self.group_size
