"""The gates before every OpenTelemetry call: what is no number or no text goes no further.

The SDK needs them, in every version: a bool or an int of 2**63 makes the exporter lose the whole batch, a NaN
freezes a gauge at its last good value or poisons a sum for ever, an int followed by a float is a type conflict
in Cloud Monitoring, a lone surrogate in a string cannot be encoded. See `tests/core/test_gates.py`.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

LONGEST_TEXT = 1024
"""Characters of an attribute value; Cloud Monitoring rejects a longer one."""


class Refused(Exception):
    """A value that cannot be recorded; `reason` is a value of `rlotel.refusal.reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def number(value: Any) -> float:
    """The value as a float; NaN and infinities pass, they are findings and not mistakes.

    Never waits for an accelerator: a tensor that lives on one is refused, not read.

    Raises:
        Refused: it is a bool, text, an array, a tensor on a device, too large, or no number at all.
    """
    kind = type(value)
    if kind is float:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return _finite_float(value)
    if value is None:
        raise Refused("not_a_number")
    if isinstance(value, bool) or kind.__name__ in {"bool_", "bool"}:
        raise Refused("bool")
    if isinstance(value, (str, bytes, bytearray)):
        raise Refused("text")
    if isinstance(value, (int, float, Real)):
        return _finite_float(value)
    return _scalar(value)


def _scalar(value: Any) -> float:
    """NumPy, PyTorch and JAX scalars and 0-d arrays, and anything else that knows how to be a float."""
    if _on_device(value):
        raise Refused("device_tensor")
    if getattr(value, "ndim", 0):
        raise Refused("array")
    if "bool" in str(getattr(value, "dtype", "")):
        raise Refused("bool")
    if not hasattr(value, "__float__"):
        raise Refused("not_a_number")
    return _finite_float(value)


def _on_device(value: Any) -> bool:
    device = getattr(value, "device", None)
    if device is None or isinstance(device, str):  # NumPy 2 says "cpu"
        return device not in (None, "cpu")
    if callable(device):  # JAX before 0.4.31
        return True
    where = getattr(device, "type", None) or getattr(device, "platform", None)
    return where is not None and where != "cpu"


def _finite_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise Refused("overflow") from None
    except Exception:  # noqa: BLE001 - a stranger's __float__ may raise anything
        raise Refused("not_a_number") from None


def text(value: object) -> str:
    """The value as text that every backend takes: legal UTF-8, at most `LONGEST_TEXT` characters.

    Raises:
        Refused: it has no text.
    """
    try:
        plain = value if type(value) is str else str(value)
        return plain[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")
    except Exception:  # noqa: BLE001 - a stranger's __str__ may raise anything
        raise Refused("text") from None


def kind_of_nonfinite(value: float) -> str | None:
    """`nan`, `inf` or None for a finite number."""
    if math.isnan(value):
        return "nan"
    return "inf" if math.isinf(value) else None
