"""The model as the Python of `rlotel/semconv/`, laid out the way `ruff format` would."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from generator.model import Attribute, Metric, Model, Use

HEADER = "# Generated from semconv/model/*.yaml by `python semconv/generate.py`. Do not edit."
WIDTH = 110


def constant(name: str) -> str:
    """The Python name of an attribute, metric or span: without `rl.`, in capitals."""
    return name.removeprefix("rl.").replace(".", "_").upper()


def class_name(name: str) -> str:
    """The Python name of an enumeration."""
    return "".join(part.title() for part in name.removeprefix("rl.").replace("_", ".").split("."))


def attributes(model: Model) -> str:
    """`rlotel/semconv/attributes.py`."""
    out = [
        HEADER,
        '"""Every attribute of the semantic model, and an enumeration of the values of those that list them."""',
        "",
        "from __future__ import annotations",
        "",
        "from enum import Enum",
        "",
        "from rlotel.semconv.types import Attribute",
    ]
    for attribute in model.attributes.values():
        if attribute.members:
            out += _enumeration(attribute)
    out += ["", ""]
    for attribute in model.attributes.values():
        out += _call(f"{constant(attribute.name)} = Attribute", _attribute_fields(attribute))
    identity = model.groups["rl.identity"]
    out += ["", *_names("IDENTITY", "Attribute", (use.name for use in identity))]
    out += ['"""What every metric point and every Resource of spans carries."""', ""]
    required = [use.name for use in identity if use.level == "required"]
    out += [*_names("REQUIRED_IDENTITY", "Attribute", required), '"""What they always carry."""', ""]
    out += _names("ALL", "Attribute", model.attributes)
    out += ["BY_NAME = {attribute.name: attribute for attribute in ALL}", ""]
    return "\n".join(out)


def metrics(model: Model) -> str:
    """`rlotel/semconv/metrics.py`."""
    out = [
        HEADER,
        '"""Every metric of the semantic model."""',
        "",
        "from __future__ import annotations",
        "",
        "from rlotel.semconv import attributes as a",
        "from rlotel.semconv.types import Metric, Use",
        "",
    ]
    for name, bounds in model.buckets.items():
        out += [f"{_private(name)} = (", *(f"    {bound!r}," for bound in bounds), ")"]
    for name in _shared_groups(model):
        out += [f"{_private(name)} = (", *_uses(model.groups[name], 4), ")"]
    out.append("")
    for metric in model.metrics:
        out += _call(f"{constant(metric.name)} = Metric", _metric_fields(metric))
    out += ["", *_names("ALL", "Metric", (metric.name for metric in model.metrics))]
    out += ["BY_NAME = {metric.name: metric for metric in ALL}", ""]
    return "\n".join(out)


def spans(model: Model) -> str:
    """`rlotel/semconv/spans.py`."""
    out = [
        HEADER,
        '"""Every span of the semantic model."""',
        "",
        "from __future__ import annotations",
        "",
        "from rlotel.semconv import attributes as a",
        "from rlotel.semconv.types import Span, Use",
        "",
    ]
    for span in model.spans:
        fields = [
            *_text("name", span.name),
            *_text("brief", span.brief),
            *_text("origin", span.origin),
            *_text("stability", span.stability),
            *_tuple("attributes", _uses(span.uses, 8)),
        ]
        out += _call(f"{constant(span.name)} = Span", fields)
    out += ["", *_names("ALL", "Span", (span.name for span in model.spans))]
    out += ["BY_NAME = {span.name: span for span in ALL}", ""]
    return "\n".join(out)


def _enumeration(attribute: Attribute) -> list[str]:
    lines = ["", "", f"class {class_name(attribute.name)}(str, Enum):", f'    """{attribute.brief}"""', ""]
    lines += [f"    {member['id'].upper()} = {json.dumps(member['value'])}" for member in attribute.members]
    # Before Python 3.12 an enumeration of strings prints as its member's name in some places only.
    return [*lines, "", "    __str__ = str.__str__"]


def _attribute_fields(attribute: Attribute) -> list[str]:
    fields = [
        *_text("name", attribute.name),
        *_text("type", attribute.type),
        *_text("brief", attribute.brief),
        *_text("stability", attribute.stability),
    ]
    if attribute.members:
        fields += _tuple("members", [f"        {json.dumps(m['value'])}," for m in attribute.members])
    if attribute.closed:
        fields.append("    closed=True,")
    if attribute.examples:
        fields += _tuple("examples", [f"        {json.dumps(example)}," for example in attribute.examples])
    return fields


def _metric_fields(metric: Metric) -> list[str]:
    words = ("name", "instrument", "unit", "brief", "signal", "origin", "stability", "owner")
    fields = [line for name in words for line in _text(name, getattr(metric, name))]
    shared = [f"        *{_private(name)}," for name in metric.groups if name != "rl.identity"]
    uses = [*shared, *_uses(metric.uses, 8)]
    if uses:
        fields += _tuple("attributes", uses)
    if metric.buckets:
        fields.append(f"    buckets={_private(metric.buckets)},")
    if metric.zeros:
        fields += _tuple("zeros", [f"        {json.dumps(zero)}," for zero in metric.zeros])
    return fields


def _shared_groups(model: Model) -> list[str]:
    return [name for name in model.groups if name != "rl.identity"]


def _private(name: str) -> str:
    return "_" + constant(name)


def _uses(uses: Iterable[Use], indent: int) -> list[str]:
    return [f'{" " * indent}Use(a.{constant(use.name)}, "{use.level}"),' for use in uses]


def _names(name: str, kind: str, members: Iterable[str]) -> list[str]:
    return [f"{name}: tuple[{kind}, ...] = (", *(f"    {constant(member)}," for member in members), ")"]


def _call(head: str, fields: list[str]) -> list[str]:
    return [f"{head}(", *fields, ")"]


def _tuple(name: str, lines: list[str]) -> list[str]:
    if len(lines) == 1 and len(one := f"    {name}=({lines[0].strip()}),") <= WIDTH:
        return [one]
    return [f"    {name}=(", *lines, "    ),"]


def _text(name: str, value: str) -> list[str]:
    return [f"    {name}={json.dumps(value, ensure_ascii=False)},"]
