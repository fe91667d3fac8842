"""How many processes a model has: `fsdp:d4t2`."""

import math
import re
from types import SimpleNamespace


class ModelAllocation:
    """The processes of one model."""

    def __init__(self, backend: str, world_size: int) -> None:
        self.backend = backend
        self.parallel = SimpleNamespace(world_size=world_size)

    @classmethod
    def from_str(cls, spec: str, name: str | None = None, scheduling_strategy: object = None) -> "ModelAllocation":
        """Read it.

        Raises:
            ValueError: it is none.
        """
        if (match := re.fullmatch(r"(\w+):((?:[a-z]\d+)+)", spec)) is None:
            raise ValueError(spec)
        return cls(match[1], math.prod(map(int, re.findall(r"\d+", match[2]))))
