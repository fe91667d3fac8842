"""Checkpoints of the demo on the local disk: with one, training goes on as if nothing had happened."""

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from rlotel.demo.optimizer import Adam
from rlotel.demo.policy import Policy


class Checkpoints:
    """The last checkpoint of a run, in a folder.

    Args:
        folder: where to keep it; it must exist.
        every: iterations from one to the next.
    """

    def __init__(self, folder: Path, every: int) -> None:
        self.every = every
        self._path = folder / "checkpoint.npz"

    def save(self, iteration: int, policy: Policy, optimizer: Adam, rng: np.random.Generator) -> int:
        """Writes a checkpoint in place of the last one.

        Returns:
            The bytes written, which survive a crash of the machine from now on.
        """
        arrays: dict[str, Any] = {f"policy.{name}": value for name, value in policy.parameters.items()}
        arrays |= {f"optimizer.{name}": value for name, value in optimizer.state().items()}
        content = io.BytesIO()
        np.savez(content, iteration=iteration, chance=json.dumps(rng.bit_generator.state), **arrays)
        partial = self._path.with_suffix(".partial")
        with partial.open("wb") as file:
            file.write(content.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._path)
        return content.getbuffer().nbytes

    def restore(self, policy: Policy, optimizer: Adam, rng: np.random.Generator) -> tuple[int, int]:
        """Takes over the last checkpoint.

        Returns:
            The iteration it was saved after, and the bytes read.

        Raises:
            FileNotFoundError: none was saved yet.
        """
        with np.load(self._path) as saved:
            arrays = dict(saved)
        policy.load({name: arrays[f"policy.{name}"] for name in policy.parameters})
        optimizer.restore(
            {name[len("optimizer.") :]: value for name, value in arrays.items() if name.startswith("optimizer.")}
        )
        rng.bit_generator.state = json.loads(str(arrays["chance"]))
        return int(arrays["iteration"]), self._path.stat().st_size
