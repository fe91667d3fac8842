"""Numbers as people read them: three figures, with a unit that fits."""

from __future__ import annotations

ABSENT = "–"


def seconds(value: float | None) -> str:
    """A duration, from microseconds to hours: `812 ms`, `1.24 s`, `3.1 min`."""
    if value is None:
        return ABSENT
    for unit, scale in (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3)):
        if value >= scale * 0.9995:
            return f"{_three(value / scale)} {unit}"
    return f"{value * 1e6:.0f} µs" if value >= 5e-7 else "0 s"


def count(value: float | None) -> str:
    """How many, or how many a second: `51.2`, `4,096`, `94.2 k`, `4.13 M`."""
    if value is None:
        return ABSENT
    if value >= 9999.5:
        return _scaled(value)
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def size(value: float | None) -> str:
    """Bytes: `788 kB`, `6.31 MB`."""
    return ABSENT if value is None else f"{_scaled(value)}B"


def level(value: float | None) -> str:
    """A health value, which may be of any size: `0.713`, `-0.0021`, `12.4`, `3e-06`."""
    return ABSENT if value is None else f"{value:.3g}"


def share(value: float | None) -> str:
    """A part of a whole, in percent; a trace of it is not 0."""
    if value is None:
        return ABSENT
    return "<1 %" if 0 < value < 0.005 else f"{value:.0%}".replace("%", " %")


def clock(value: float) -> str:
    """Minutes and seconds that have passed: `0:21`."""
    return f"{int(value) // 60}:{int(value) % 60:02d}"


def took(value: float) -> str:
    """How long a whole run took: `34 s`, `1 min 48 s`."""
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _scaled(value: float) -> str:
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale * 0.9995:
            return f"{_three(value / scale)} {unit}"
    return f"{value:.0f} "


def _three(value: float) -> str:
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"
