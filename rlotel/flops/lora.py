"""LoRA adapters: which matrices they sit on and the FLOPs they change.

A frozen matrix has no weight gradient, so training passes it twice (forward, gradient of the input) and an
adapter three times. Attention has no weights: its backward stays twice its forward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlotel.flops.settings import load, value_of

if TYPE_CHECKING:
    from rlotel.flops.architecture import Architecture

ALL_LINEAR = "all-linear"


@dataclass(frozen=True)
class Lora:
    """Adapters of one rank on the matrices named in `targets`.

    `targets` are names of `Linear`s (`q_proj`, `gate_proj`, …). The adapters of a mixture's experts are
    counted as the experts are: those a token is routed to.
    """

    rank: int
    targets: frozenset[str] | None = None
    """None: PEFT's `all-linear`, every matrix but the router and the LM head."""

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ValueError(f"a LoRA rank is 1 or more, not {self.rank}")

    @classmethod
    def from_config(cls, config: object) -> Lora:
        """Read PEFT's `adapter_config.json`: its path, its folder, its mapping or a `LoraConfig`.

        Raises:
            ValueError: It has no rank, or targets that are no list of names and not `all-linear`.
            OSError: The file cannot be read.
        """
        loaded = load(config, name="adapter_config.json")
        rank, targets = value_of(loaded, "r"), value_of(loaded, "target_modules")
        if isinstance(rank, bool) or not isinstance(rank, int):
            raise ValueError(f"r of the LoRA config is {rank!r}, not a whole number")
        if targets == ALL_LINEAR:
            return cls(rank)
        if not isinstance(targets, (list, tuple, set, frozenset)) or not targets:
            raise ValueError(f"target_modules of the LoRA config is {targets!r}, not a list of names")
        return cls(rank, frozenset(map(str, targets)))

    def active_weights(self, architecture: Architecture) -> int:
        """Adapter weights that multiply one token.

        Raises:
            ValueError: A target is no matrix of this model.
        """
        targets = self.targets
        if targets is None:
            targets = frozenset(
                linear.name for linear in architecture.linears if linear.term not in ("router", "lm_head")
            )
        unknown = targets - {linear.name for linear in architecture.linears}
        if unknown:
            names = ", ".join(dict.fromkeys(linear.name for linear in architecture.linears))
            raise ValueError(
                f"{', '.join(sorted(unknown))}: no matrix of {architecture.model_type}, which has {names}"
            )
        return sum(
            linear.layers * linear.active * self.rank * (linear.inputs + linear.outputs)
            for linear in architecture.linears
            if linear.name in targets
        )
