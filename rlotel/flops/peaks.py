"""Finds a GPU's dense peak by its device name, or says that it is unknown.

Guessing is what makes an MFU worthless (an unknown card taken for an A100 gave others 200 %), so every word
of the name has to be accounted for: a "Laptop", a "D" or a vGPU profile behind a known name makes it another
card, whose peak is unknown.
"""

from __future__ import annotations

import math
import re

from rlotel.flops.gpus import NAMES, Dtype, Gpu

_DTYPES: dict[str, Dtype] = {
    "tf32": "tf32",
    "fp16": "fp16",
    "float16": "fp16",
    "half": "fp16",
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp8": "fp8",
    "float8": "fp8",
    "fp4": "fp4",
    "nvfp4": "fp4",
}
# Maker, board and memory size: words that do not change which GPU it is.
_NEUTRAL = re.compile(r"nvidia|tesla|geforce|amd|instinct|sxm\d?|oam|\d+gb?")


def _words(name: str) -> tuple[str, ...]:
    return tuple(re.split(r"[\s_-]+", name.strip().casefold()))


# Longest first, so that "H100 PCIe" is found before the "H100" in it.
_PATTERNS = sorted(((_words(name), gpu) for name, gpu in NAMES.items()), key=lambda entry: -len(entry[0]))


def find_gpu(name: str) -> Gpu | None:
    """Find a GPU by the name its driver reports ("NVIDIA H100 80GB HBM3"); any thread.

    The words of the longest known name have to be in it, next to each other, and the others may say no more
    than the maker, the board and the size of the memory. A MIG slice is no GPU: None.
    """
    words = _words(name)
    for pattern, gpu in _PATTERNS:
        size = len(pattern)
        for start in range(len(words) - size + 1):
            if words[start : start + size] == pattern:
                rest = words[:start] + words[start + size :]
                return gpu if all(map(_NEUTRAL.fullmatch, rest)) else None
    return None


def peak_flops(
    name: str, dtype: str = "bf16", *, sm_share: float | None = None, override: float | None = None
) -> float | None:
    """Peak dense FLOP/s of one device, None where it is unknown.

    Args:
        name: The device's name as the driver reports it.
        dtype: tf32, fp16, bf16, fp8 or fp4, or torch's name of it (torch.bfloat16).
        sm_share: Share of the parent GPU's streaming multiprocessors that a MIG slice has, by which the
            parent's peak is scaled. Without it a slice's peak is unknown: its name does not say.
        override: What the user says the peak is; it wins.

    Raises:
        ValueError: `override` is no finite number above 0, or `sm_share` is not in (0, 1].
    """
    if override is not None:
        return _positive(override)
    if sm_share is not None and not 0 < sm_share <= 1:
        raise ValueError(f"sm_share is {sm_share}, not a share above 0 and up to 1")
    kind = _DTYPES.get(dtype.casefold().removeprefix("torch."))
    parent, is_slice = _parent(name)
    gpu = find_gpu(parent)
    whole = None if gpu is None or kind is None else gpu.flops(kind)
    if whole is None or not is_slice:
        return whole
    return None if sm_share is None else whole * sm_share


def peak_bandwidth(name: str, *, override: float | None = None) -> float | None:
    """Peak bytes/s of one device's memory, None where it is unknown, as it is for a MIG slice.

    Raises:
        ValueError: `override` is no finite number above 0.
    """
    if override is not None:
        return _positive(override)
    gpu = find_gpu(name)
    return None if gpu is None or gpu.bandwidth is None else gpu.bandwidth * 1e12


def _parent(name: str) -> tuple[str, bool]:
    """The whole GPU's name and whether `name` is a MIG slice of it ("NVIDIA A100-SXM4-40GB MIG 1g.5gb")."""
    parent, *profile = re.split(r"\s+MIG\s+", name, maxsplit=1, flags=re.IGNORECASE)
    return parent, bool(profile)


def _positive(peak: float) -> float:
    if not (math.isfinite(peak) and peak > 0):
        raise ValueError(f"a peak rate is a finite number above 0, not {peak}")
    return float(peak)
