"""Adam, with the gradient clipped by its global norm."""

import numpy as np

from rlotel.demo.policy import Floats, Policy, Weights

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Adam (Kingma and Ba, 2015) for the parameters of one policy."""

    def __init__(self, policy: Policy, *, learning_rate: float, max_grad_norm: float) -> None:
        self.policy = policy
        self.learning_rate = learning_rate
        self.max_grad_norm = max_grad_norm
        self._count = 0
        self._mean: Weights = {name: np.zeros_like(value) for name, value in policy.parameters.items()}
        self._square: Weights = {name: np.zeros_like(value) for name, value in policy.parameters.items()}

    def step(self, gradient: Weights) -> tuple[float, bool]:
        """Moves the parameters against the gradient, unless it is not finite.

        Returns:
            The norm of the gradient before clipping, and whether the parameters moved: one bad batch would
            otherwise ruin the policy for good.
        """
        norm = float(np.sqrt(sum(float((value**2).sum()) for value in gradient.values())))
        if not np.isfinite(norm):
            return norm, False
        scale = min(1.0, self.max_grad_norm / norm) if norm > 0 else 1.0
        self._count += 1
        rate = self.learning_rate * (1 - _BETA2**self._count) ** 0.5 / (1 - _BETA1**self._count)
        for name, value in gradient.items():
            clipped = value * scale
            mean, square = self._mean[name], self._square[name]
            mean += (1 - _BETA1) * (clipped - mean)
            square += (1 - _BETA2) * (clipped**2 - square)
            self.policy.parameters[name] -= rate * mean / (np.sqrt(square) + _EPSILON)
        return norm, True

    def state(self) -> dict[str, Floats]:
        """Everything a checkpoint needs to go on as if nothing had happened, as named arrays."""
        return {
            "count": np.array(float(self._count)),
            **{f"mean.{name}": value.copy() for name, value in self._mean.items()},
            **{f"square.{name}": value.copy() for name, value in self._square.items()},
        }

    def restore(self, state: dict[str, Floats]) -> None:
        """Takes over what :meth:`state` gave; raises KeyError when something is missing."""
        self._count = int(state["count"])
        self._mean = {name: state[f"mean.{name}"].copy() for name in self._mean}
        self._square = {name: state[f"square.{name}"].copy() for name in self._square}
