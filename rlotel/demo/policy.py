"""The demo's policy: a small autoregressive network in NumPy, with its backward pass written out.

The network reads a fixed window (the prompt and the completion so far, unwritten places marked as such): an
embedding, two hidden layers (the second adds to the first) and a softmax over the vocabulary. It holds no
random state: whoever samples brings the generator, so the same seed gives the same run to the bit.
"""

import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlotel.demo import task

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Weights = dict[str, Floats]

_UNWRITTEN = len(task.VOCABULARY)


@dataclass(frozen=True)
class Rollouts:
    """Completions of prompts, ``group_size`` in a row for each prompt.

    Attributes:
        prompts: Token ids, shape (samples, 4).
        completions: Token ids, shape (samples, max_tokens); only the first ``lengths`` of a row are real.
        lengths: Tokens of each completion, the end mark included.
        logprobs: The log-probability of each token when it was sampled, 0 where there is none.
        group_size: Completions per prompt.
    """

    prompts: Ints
    completions: Ints
    lengths: Ints
    logprobs: Floats
    group_size: int

    @property
    def samples(self) -> int:
        """How many completions there are."""
        return len(self.prompts)

    @property
    def prompt_tokens(self) -> int:
        """Prompt tokens of all samples."""
        return int(self.prompts.size)

    @property
    def completion_tokens(self) -> int:
        """Completion tokens of all samples, the end marks included."""
        return int(self.lengths.sum())

    @property
    def mask(self) -> Bools:
        """Which places of ``completions`` hold a token."""
        return np.arange(self.completions.shape[1]) < self.lengths[:, None]

    @property
    def truncated(self) -> Bools:
        """Which completions reached the maximum length without an end mark."""
        last = self.completions[np.arange(self.samples), self.lengths - 1]
        return np.asarray(last != task.END)

    def texts(self) -> list[tuple[str, str]]:
        """Each prompt and its completion as text."""
        return [
            (task.decode(prompt), task.decode(completion[:length]))
            for prompt, completion, length in zip(self.prompts, self.completions, self.lengths, strict=True)
        ]

    def select(self, rows: Ints) -> "Rollouts":
        """The samples of these rows, whatever their groups: a minibatch."""
        return Rollouts(
            self.prompts[rows],
            self.completions[rows],
            self.lengths[rows],
            self.logprobs[rows],
            self.group_size,
        )

    def contexts(self) -> Ints:
        """What the network reads for each completion token, in the order of ``mask``."""
        samples, places = np.nonzero(self.mask)
        windows = np.concatenate([self.prompts, self.completions[:, :-1]], axis=1)[samples]
        windows[np.arange(windows.shape[1]) >= task.PROMPT_TOKENS + places[:, None]] = _UNWRITTEN
        return windows


@dataclass(frozen=True)
class Activations:
    """What a forward pass keeps for the backward pass."""

    contexts: Ints
    inputs: Floats
    first: Floats
    second: Floats
    hidden: Floats
    logprobs: Floats


class Policy:
    """A categorical distribution over the next token, and its gradient."""

    def __init__(self, rng: np.random.Generator, *, max_tokens: int, hidden: int, embedding: int = 16) -> None:
        window = task.PROMPT_TOKENS + max_tokens - 1
        tokens = len(task.VOCABULARY)

        def normal(rows: int, columns: int, scale: float) -> Floats:
            return rng.standard_normal((rows, columns)) * scale

        self.max_tokens = max_tokens
        self.parameters: Weights = {
            "embedding": normal(tokens + 1, embedding, 1.0),
            "first": normal(window * embedding, hidden, (2 / (window * embedding)) ** 0.5),
            "first_bias": np.zeros(hidden),
            "second": normal(hidden, hidden, (2 / hidden) ** 0.5),
            "second_bias": np.zeros(hidden),
            # A small last layer: the untrained policy is nearly uniform, so it tries everything.
            "output": normal(hidden, tokens, 0.1 / hidden**0.5),
            "output_bias": np.zeros(tokens),
        }

    def copy(self) -> "Policy":
        """A policy of its own with the same weights: a sampler, or a reference to keep."""
        twin = copy.copy(self)
        twin.parameters = self.weights()
        return twin

    def weights(self) -> Weights:
        """A copy of the parameters, to send to a sampler or to keep in a checkpoint."""
        return {name: value.copy() for name, value in self.parameters.items()}

    def load(self, weights: Weights) -> int:
        """Takes over a copy of other weights.

        Returns:
            The bytes transferred.

        Raises:
            ValueError: The weights are not those of a policy of this shape.
        """
        shapes = {name: value.shape for name, value in weights.items()}
        if shapes != {name: value.shape for name, value in self.parameters.items()}:
            raise ValueError("the weights are of a policy of another shape: make both with the same arguments")
        self.parameters = {name: value.copy() for name, value in weights.items()}
        return sum(value.nbytes for value in weights.values())

    def flops(self, tokens: int, *, train: bool = False) -> float:
        """Model FLOPs of a forward pass over so many completion tokens, or of forward and backward.

        Two per weight of a matrix product and token; the backward pass costs twice the forward pass.
        """
        weights = sum(self.parameters[name].size for name in ("first", "second", "output"))
        return float((6 if train else 2) * weights * tokens)

    def forward(self, contexts: Ints) -> Activations:
        """Log-probabilities of every next token, one row a context."""
        p = self.parameters
        inputs = p["embedding"][contexts].reshape(len(contexts), -1)
        first = np.maximum(inputs @ p["first"] + p["first_bias"], 0.0)
        second = np.maximum(first @ p["second"] + p["second_bias"], 0.0)
        hidden = first + second
        logits = hidden @ p["output"] + p["output_bias"]
        logits -= logits.max(axis=1, keepdims=True)
        logprobs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return Activations(contexts, inputs, first, second, hidden, logprobs)

    def backward(self, seen: Activations, logits_gradient: Floats) -> Weights:
        """The gradient of a loss by each parameter, from its gradient by the logits."""
        p = self.parameters
        hidden = logits_gradient @ p["output"].T
        second = hidden * (seen.second > 0)
        first = (hidden + second @ p["second"].T) * (seen.first > 0)
        inputs = (first @ p["first"].T).reshape(-1, p["embedding"].shape[1])
        # One-hot product instead of np.add.at: the same sum, many times faster.
        one_hot = np.eye(len(p["embedding"]))[seen.contexts.ravel()]
        return {
            "embedding": one_hot.T @ inputs,
            "first": seen.inputs.T @ first,
            "first_bias": first.sum(axis=0),
            "second": seen.first.T @ second,
            "second_bias": second.sum(axis=0),
            "output": seen.hidden.T @ logits_gradient,
            "output_bias": logits_gradient.sum(axis=0),
        }

    def sample(self, prompts: Ints, group_size: int, rng: np.random.Generator) -> Rollouts:
        """Completes each prompt ``group_size`` times, token by token.

        Args:
            prompts: Token ids, shape (prompts, 4).
            group_size: Completions per prompt.
            rng: The only source of chance.
        """
        repeated = np.repeat(prompts, group_size, axis=0)
        count = len(repeated)
        windows = np.full((count, task.PROMPT_TOKENS + self.max_tokens), _UNWRITTEN)
        windows[:, : task.PROMPT_TOKENS] = repeated
        logprobs = np.zeros((count, self.max_tokens))
        lengths = np.zeros(count, dtype=np.int64)
        active = np.arange(count)
        for place in range(self.max_tokens):
            distribution = self.forward(windows[active, :-1]).logprobs
            cumulative = np.exp(distribution).cumsum(axis=1)
            drawn = rng.random((len(active), 1)) * cumulative[:, -1:]
            tokens = (cumulative <= drawn).sum(axis=1).clip(max=distribution.shape[1] - 1)
            windows[active, task.PROMPT_TOKENS + place] = tokens
            logprobs[active, place] = distribution[np.arange(len(active)), tokens]
            lengths[active] += 1
            active = active[tokens != task.END]
            if not len(active):
                break
        return Rollouts(repeated, windows[:, task.PROMPT_TOKENS :], lengths, logprobs, group_size)

    def logprobs(self, rollouts: Rollouts) -> Floats:
        """The log-probability of each completion token under this policy, 0 where there is none."""
        mask = rollouts.mask
        distribution = self.forward(rollouts.contexts()).logprobs
        result = np.zeros(mask.shape)
        result[mask] = distribution[np.arange(len(distribution)), rollouts.completions[mask]]
        return result
