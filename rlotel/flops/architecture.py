"""What a FLOP count needs to know of a transformer: its weight matrices and its attention cores.

Every matrix is listed once, under the name it has in Hugging Face's modelling code, with how many copies a
layer holds and how many of them one token passes through. FLOPs, parameters, bytes read and LoRA adapters
are all sums over this one list, so they cannot disagree about the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Term = Literal["attention_projections", "mlp", "router", "lm_head"]


class UnknownArchitecture(ValueError):
    """A model whose FLOPs this library does not know how to count; the message is one line for a log."""


@dataclass(frozen=True)
class Linear:
    """One kind of weight matrix, `inputs` × `outputs`, that multiplies activations.

    The embedding is none of these: it is gathered, not multiplied.
    """

    name: str
    term: Term
    inputs: int
    outputs: int
    layers: int = 1
    """Layers that hold it."""
    copies: int = 1
    """Copies in one layer: the experts of a mixture, else 1."""
    active: int = 1
    """Copies one token passes through: the experts it is routed to, else 1."""
    bias: bool = False

    @property
    def weights(self) -> int:
        """Weights in the model, biases aside."""
        return self.layers * self.copies * self.inputs * self.outputs

    @property
    def active_weights(self) -> int:
        """Weights that multiply one token."""
        return self.layers * self.active * self.inputs * self.outputs

    @property
    def parameters(self) -> int:
        """Weights and biases in the model."""
        return self.weights + (self.layers * self.copies * self.outputs if self.bias else 0)


@dataclass(frozen=True)
class AttentionCore:
    """Query·key and score·value of `layers` layers that look equally far back."""

    layers: int
    heads: int
    qk_dim: int
    """Width of a query and of a key, per head."""
    v_dim: int
    """Width of a value, per head."""
    cached: int
    """Numbers one layer keeps in the KV cache for one token."""
    window: int | None = None
    """Tokens a query sees, itself included; None: all before it."""


@dataclass(frozen=True)
class Architecture:
    """A decoder-only transformer, as far as its FLOPs depend on it."""

    model_type: str
    linears: tuple[Linear, ...]
    cores: tuple[AttentionCore, ...]
    other_parameters: int
    """Parameters that multiply no matrix: norms, an untied embedding, attention sinks."""
    language_tower_only: bool = False
    """The model has a vision or audio tower beside it, which is not in here."""

    @property
    def parameters(self) -> int:
        """All parameters of the (language) model."""
        return sum(linear.parameters for linear in self.linears) + self.other_parameters

    @property
    def active_weights(self) -> int:
        """Weights that multiply one token, LM head included: the N of 6N."""
        return sum(linear.active_weights for linear in self.linears)

    def weights_of(self, term: Term) -> int:
        """Weights of one term that multiply one token."""
        return sum(linear.active_weights for linear in self.linears if linear.term == term)
