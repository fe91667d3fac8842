"""What in the README follows from the code: the golden signals from the model, the settings from `Config`.

They stand between markers in the hand-written page, `<!-- signals -->` … `<!-- /signals -->`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rlotel.config import SETTINGS

if TYPE_CHECKING:
    from generator.model import Model

SIGNALS = {
    "latency": ("Latency", "where does the time go"),
    "traffic": ("Traffic", "how fast is it"),
    "errors": ("Errors and health", "what fails, is it learning"),
    "saturation": ("Saturation", "what is full"),
    "run": ("The run", "is it alive, what would be lost"),
}


def fill(page: str, model: Model) -> str:
    """The page with its generated parts made anew."""
    for name, text in {"signals": _signals(model), "settings": _settings()}.items():
        before, start, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        if end:
            page = f"{before}{start}{text}{end}{after}"
    return page


def _signals(model: Model) -> str:
    rows = []
    for signal, (title, question) in SIGNALS.items():
        names = [metric.name for metric in model.metrics if metric.signal == signal and metric.owner != "node"]
        rows.append(f"| **{title}**: {question} | {' '.join(f'`{name}`' for name in names)} |")
    return "\n".join(["| Golden signal | Metrics |", "| --- | --- |", *rows, ""])


def _settings() -> str:
    rows = []
    for setting in SETTINGS:
        names = ", ".join(f"`{variable.name}`" for variable in setting.metadata["variables"])
        rows.append(f"| `{setting.name}` | {names} | {_default(setting.default)} | {setting.metadata['help']} |")
    return "\n".join(["| Argument | Variables | Default | Meaning |", "| --- | --- | --- | --- |", *rows, ""])


def _default(value: object) -> str:
    if value is None:
        return ""
    return f"`{value}`" if not isinstance(value, Mapping) else ""
