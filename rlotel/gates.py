"""The gates before every OpenTelemetry call: what is no number or no text goes no further.

The SDK needs them, in every version: a bool or an int of 2**63 makes the exporter lose the whole batch, a NaN
freezes a gauge at its last good value or poisons a sum for ever, an int followed by a float is a type conflict
in Cloud Monitoring, a lone surrogate in a string cannot be encoded. See `tests/core/test_gates.py`.
"""

from __future__ import annotations

import math
from numbers import Complex, Real
from typing import Any

from rlotel.semconv import attributes as attr
from rlotel.semconv.attributes import RlotelRefusalReason as Reason
from rlotel.semconv.attributes import ValueKind

LONGEST_TEXT = 1024
"""Characters of an attribute value; Cloud Monitoring rejects a longer one."""


class Refused(Exception):
    """A value that cannot be recorded, and why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
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
        return _float(value)
    try:
        return _stranger(value, kind.__name__)
    except Refused:
        raise
    except Exception:  # noqa: BLE001 - a stranger's attributes may raise anything
        raise Refused(Reason.NOT_A_NUMBER) from None


def _stranger(value: Any, kind: str) -> float:
    if value is None:
        raise Refused(Reason.NOT_A_NUMBER)
    if isinstance(value, bool) or kind in {"bool_", "bool"}:
        raise Refused(Reason.BOOL)
    if isinstance(value, (str, bytes, bytearray)):
        raise Refused(Reason.TEXT)
    if isinstance(value, (int, float, Real)):
        return _float(value)
    if isinstance(value, Complex):
        raise Refused(Reason.NOT_A_NUMBER)
    return _scalar(value)


def _scalar(value: Any) -> float:
    """NumPy, PyTorch and JAX scalars and 0-d arrays, and anything else that knows how to be a float."""
    if on_device(value):
        raise Refused(Reason.DEVICE_TENSOR)
    if getattr(value, "ndim", 0):
        raise Refused(Reason.ARRAY)
    if "bool" in str(getattr(value, "dtype", "")):
        raise Refused(Reason.BOOL)
    if not hasattr(value, "__float__"):
        raise Refused(Reason.NOT_A_NUMBER)
    return _float(value)


def on_device(value: Any) -> bool:
    """Whether reading the value might wait for an accelerator; one that does not say where it is might."""
    device = getattr(value, "device", None)
    if device is None:
        return False
    if isinstance(device, str):  # NumPy says "cpu", TensorFlow "/job:localhost/…/device:CPU:0"
        return not device.lower().rpartition("device:")[2].startswith("cpu")
    return (getattr(device, "type", None) or getattr(device, "platform", None)) != "cpu"


def integer(value: object) -> int:
    """The value as a whole number that fits into a span attribute; fractions are cut off.

    Raises:
        Refused: it is no finite number, or needs more than 64 bits.
    """
    if type(value) is int:
        whole = value
    else:
        level = number(value)
        if kind_of_nonfinite(level):
            raise Refused(Reason.NOT_A_NUMBER)
        whole = int(level)
    if not -(2**63) <= whole < 2**63:
        raise Refused(Reason.OVERFLOW)
    return whole


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise Refused(Reason.OVERFLOW) from None
    except Exception:  # noqa: BLE001 - a stranger's __float__ may raise anything
        raise Refused(Reason.NOT_A_NUMBER) from None


def text(value: object) -> str:
    """The value as text that every backend takes: legal UTF-8, at most `LONGEST_TEXT` characters.

    Raises:
        Refused: it has no text.
    """
    try:
        plain = value if type(value) is str else str(value)
        return plain[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")
    except Exception:  # noqa: BLE001 - a stranger's __str__ may raise anything
        raise Refused(Reason.TEXT) from None


def attribute(name: str, value: object) -> str | bool | int:
    """The value of an attribute, as the model types it.

    Raises:
        Refused: it cannot be.
        KeyError: the model has no such attribute.
    """
    kind = attr.BY_NAME[name].type
    if kind == "int":
        return integer(value)
    return value if kind == "boolean" and type(value) is bool else text(value)


def kind_of_nonfinite(value: float) -> ValueKind | None:
    """In what way a number is not finite; None if it is."""
    if math.isfinite(value):
        return None
    return ValueKind.NAN if math.isnan(value) else ValueKind.INF
