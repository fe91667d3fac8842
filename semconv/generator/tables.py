"""`semconv/README.md`: the hand-written introduction, then the model as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from generator.model import Attribute, Metric, Model, Span, Use

SIGNALS = {
    "latency": "Latency",
    "traffic": "Traffic",
    "errors": "Errors and health",
    "saturation": "Saturation",
    "run": "About the run",
    "rlotel": "About rlotel itself",
}
ORIGINS = {
    "proposal": "Google's OpenTelemetry proposal for `rl.*` (semantic-conventions-genai #88), unchanged",
    "google_dashboard": "a name that Google's published RL dashboard queries",
    "nemo_rl": "a name that NeMo RL's own telemetry emits, unchanged, its missing unit too",
    "opentelemetry": "OpenTelemetry's semantic conventions",
    "rlotel": "new here, in the same style",
}
OWNERS = {
    "launcher": "the process that launched the run",
    "loop": "the process that runs the loop",
    "node": "one process a node",
    "process": "every process for itself",
}
LEVELS = {"required": "", "recommended": "recommended", "opt_in": "opt-in"}


def readme(model: Model, crosswalk: dict[str, Any]) -> str:
    """The page."""
    return "\n\n".join(
        [
            "<!-- Generated from semconv/model/*.yaml by `python semconv/generate.py`. Do not edit. -->",
            (Path(__file__).parent / "intro.md").read_text(encoding="utf-8").strip(),
            "## Metrics",
            _identity(model),
            _legend("Origin", ORIGINS),
            _legend("Reported by", OWNERS),
            *(section for signal in SIGNALS for section in _signal(model, signal)),
            *_buckets(model),
            "## Spans",
            "All are of kind INTERNAL. Identity is on their Resource.",
            _table(["Span", "Meaning", "Attributes", "Origin"], [_span_row(span) for span in model.spans]),
            "## Attributes",
            *_attributes(model),
            "## What others call it",
            _crosswalk(crosswalk) + "\n",
        ]
    )


def _identity(model: Model) -> str:
    run, gpu = (", ".join(_use(use) for use in model.groups[name]) for name in ("rl.identity", "rl.gpu.identity"))
    return (
        f"Every point carries the identity of its run as well, and so does the Resource of every span: {run}.\n\n"
        f"Points about a GPU carry the GPU's too: {gpu}."
    )


def _legend(title: str, words: dict[str, str]) -> str:
    return "\n".join([f"{title}:", "", *(f"- `{word}`: {meaning}" for word, meaning in words.items())])


def _signal(model: Model, signal: str) -> list[str]:
    rows = [_metric_row(metric) for metric in model.metrics if metric.signal == signal]
    heads = ["Metric", "Kind", "Unit", "Meaning", "Attributes", "Reported by", "Origin"]
    return [f"### {SIGNALS[signal]}", _table(heads, rows)]


def _metric_row(metric: Metric) -> list[str]:
    gpu = ["the GPU's identity"] if "rl.gpu.identity" in metric.groups else []
    kind = f"{metric.instrument}, from 0" if metric.zeros else metric.instrument
    unit = f"`{metric.unit}`" if metric.unit else ""
    attributes = "<br>".join([*(_use(use) for use in metric.uses), *gpu])
    return [f"`{metric.name}`", kind, unit, _meaning(metric), attributes, metric.owner, metric.origin]


def _span_row(span: Span) -> list[str]:
    return [f"`{span.name}`", _meaning(span), "<br>".join(_use(use) for use in span.uses), span.origin]


def _meaning(item: Attribute | Metric | Span) -> str:
    return f"{item.brief} {item.note}".strip()


def _use(use: Use) -> str:
    """An attribute by name, with its level if it may be missing."""
    level = use.condition[:1].lower() + use.condition[1:].rstrip(".") or LEVELS[use.level]
    return f"`{use.name}`" + (f" ({level})" if level else "")


def _buckets(model: Model) -> list[str]:
    rows = [
        [
            f"`{name}`",
            str(len(bounds)),
            f"{bounds[0]:g} to {bounds[-1]:.15g}",
            ", ".join(f"`{metric.name}`" for metric in model.metrics if metric.buckets == name),
        ]
        for name, bounds in model.buckets.items()
    ]
    return ["### Buckets", _table(["Set", "Bounds", "Range", "Used by"], rows)]


def _attributes(model: Model) -> list[str]:
    sections: dict[str, list[list[str]]] = {}
    for attribute in model.attributes.values():
        values = ", ".join(f"`{member['value']}`" for member in attribute.members)
        if values and not attribute.closed:
            values += ", …"
        values = values or "such as " + ", ".join(f"`{example}`" for example in attribute.examples)
        if attribute.type == "boolean":
            values = "`true`, `false`"
        row = [f"`{attribute.name}`", attribute.type, _meaning(attribute), values, attribute.stability]
        sections.setdefault(attribute.section, []).append(row)
    heads = ["Attribute", "Type", "Meaning", "Values", "Stability"]
    return [text for title, rows in sections.items() for text in (f"### {title}", _table(heads, rows))]


def _crosswalk(crosswalk: dict[str, Any]) -> str:
    sources = crosswalk["sources"]
    about = "\n".join(f"- {source['title']}: {source['about']}" for source in sources.values())
    rows = [[f"`{row['name']}`", *(_cell(row.get(source, "")) for source in sources)] for row in crosswalk["rows"]]
    return about + "\n\n" + _table(["Here", *(source["title"] for source in sources.values())], rows)


def _cell(text: str) -> str:
    return text.replace("<", "&lt;")


def _table(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads), *lines])
