"""The model as it lies in `semconv/model/*.yaml`, read and with every `ref`, `extends` and bucket set resolved."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = "rl.identity"
"""The group that every metric extends; what it holds is on the points of all of them."""

ORDER = (
    *("registry", "identity", "loop", "sample", "reward", "train", "sync", "health"),
    *("checkpoint", "run", "gpu", "self", "spans"),
)
"""The files in the order a reader wants them; others follow by name."""


class ModelError(Exception):
    """The model is wrong; the message says where and what to do."""


@dataclass(frozen=True)
class Attribute:
    """An attribute of the registry."""

    name: str
    type: str
    brief: str
    stability: str
    origin: str
    section: str
    note: str = ""
    closed: bool = False
    members: tuple[dict[str, str], ...] = ()
    examples: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Use:
    """An attribute with the requirement level that a group gives it; the condition is for the tables."""

    name: str
    level: str
    condition: str = ""


@dataclass(frozen=True)
class Metric:
    """A metric, its own attributes apart from those of the groups it extends."""

    name: str
    instrument: str
    unit: str
    brief: str
    note: str
    stability: str
    signal: str
    origin: str
    owner: str
    groups: tuple[str, ...]
    uses: tuple[Use, ...]
    buckets: str = ""
    zeros: tuple[dict[str, str], ...] = ()


@dataclass(frozen=True)
class Span:
    """A span."""

    name: str
    brief: str
    note: str
    stability: str
    origin: str
    uses: tuple[Use, ...]


@dataclass
class Model:
    """All of it, in the order of the files."""

    attributes: dict[str, Attribute] = field(default_factory=dict)
    groups: dict[str, tuple[Use, ...]] = field(default_factory=dict)
    metrics: list[Metric] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    buckets: dict[str, tuple[float, ...]] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)


def bounds(first: float, ratio: float, last: float, digits: int | None = None) -> tuple[float, ...]:
    """The upper bounds of a bucket set: from `first` to `last`, no two further apart than `ratio`."""
    found = [float(first)]
    while found[-1] * ratio < last:
        bound = found[-1] * ratio
        if digits is not None:
            # Rounded down, never to the nearest: the promise is about the largest step.
            scale = 10.0 ** (digits - 1 - math.floor(math.log10(bound) + 1e-9))
            bound = round(math.floor(bound * scale + 1e-9) / scale, 12)
        if bound <= found[-1]:
            raise ModelError(f"buckets from {first}: {digits} digits are too few for a ratio of {ratio}")
        found.append(bound)
    return (*found, float(last))


def read_files(folder: Path) -> dict[str, Any]:
    """What each file of the model says, by the file's name, in the order they are published in."""
    files = sorted(path for path in folder.glob("*.yaml") if path.name != "manifest.yaml")
    files.sort(key=lambda path: ORDER.index(path.stem) if path.stem in ORDER else len(ORDER))
    return {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in files}


def read_buckets(path: Path) -> dict[str, tuple[float, ...]]:
    """The bounds of each set."""
    sets = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {name: bounds(**spec) for name, spec in sets.items()}


def resolve(files: dict[str, Any], buckets: dict[str, tuple[float, ...]]) -> Model:
    """The model, from files that keep to its schema.

    Raises:
        ModelError: an `extends` or a value to start at zero with does not exist.
    """
    model = Model(buckets=buckets)
    groups = [group for content in files.values() for group in content["groups"]]
    model.ids = [group["id"] for group in groups]
    for group in groups:
        if group["id"].startswith("registry."):
            model.ids += [attribute["id"] for attribute in group["attributes"]]
            _add_registry(model, group)
    extends = {group["id"]: group.get("extends", "") for group in groups if _is_group_of_uses(group)}
    for group in groups:
        if _is_group_of_uses(group):
            model.groups[group["id"]] = _uses(group)
        elif group["type"] == "metric":
            _add_metric(model, group, extends)
        elif group["type"] == "span":
            _add_span(model, group)
    return model


def _is_group_of_uses(group: dict[str, Any]) -> bool:
    return group["type"] == "attribute_group" and not group["id"].startswith("registry.")


def _add_registry(model: Model, group: dict[str, Any]) -> None:
    for entry in group["attributes"]:
        ours = {**_ours(group), **_ours(entry)}
        kind = entry["type"]
        model.attributes[entry["id"]] = Attribute(
            name=entry["id"],
            type=kind if isinstance(kind, str) else "string",
            brief=entry["brief"],
            stability=entry["stability"],
            origin=ours.get("origin", "rlotel"),
            section=group["display_name"],
            note=entry.get("note", "").strip(),
            closed=ours.get("closed", False),
            members=() if isinstance(kind, str) else tuple(kind["members"]),
            examples=tuple(entry.get("examples", ())),
        )


def _add_metric(model: Model, group: dict[str, Any], extends: dict[str, str]) -> None:
    ours = _ours(group)
    chain = []
    parent = group.get("extends", "")
    while parent:
        if parent not in extends:
            raise ModelError(f"{group['id']}: extends {parent}, which is no group of attributes")
        chain.append(parent)
        parent = extends[parent]
    uses = _uses(group)
    model.metrics.append(
        Metric(
            name=group["metric_name"],
            instrument=group["instrument"],
            unit=group["unit"],
            brief=group["brief"],
            note=group.get("note", "").strip(),
            stability=group["stability"],
            signal=ours["signal"],
            origin=ours["origin"],
            owner=ours["owner"],
            groups=tuple(reversed(chain)),
            uses=uses,
            buckets=ours.get("buckets", ""),
            zeros=_zeros(model, group["id"], uses, ours.get("starts_at_zero", False)),
        )
    )


def _add_span(model: Model, group: dict[str, Any]) -> None:
    model.spans.append(
        Span(
            name=group["id"].removeprefix("span."),
            brief=group["brief"],
            note=group.get("note", "").strip(),
            stability=group["stability"],
            origin=_ours(group)["origin"],
            uses=_uses(group),
        )
    )


def _ours(entry: dict[str, Any]) -> dict[str, Any]:
    ours: dict[str, Any] = entry.get("annotations", {}).get("rlotel", {})
    return ours


def _uses(group: dict[str, Any]) -> tuple[Use, ...]:
    uses = []
    for entry in group.get("attributes", ()):
        level = entry["requirement_level"]
        if isinstance(level, dict):
            ((level, condition),) = level.items()
            uses.append(Use(entry["ref"], level, condition))
        else:
            uses.append(Use(entry["ref"], level))
    return tuple(uses)


def _zeros(
    model: Model, where: str, uses: tuple[Use, ...], spec: bool | list[dict[str, list[str]]]
) -> tuple[dict[str, str], ...]:
    """The attribute sets a counter starts at 0 with: as listed, or with `true` every combination there is."""
    if spec is False:
        return ()
    listed = spec if isinstance(spec, list) else [_every_member(model, where, uses)]
    used = {use.name for use in uses}
    zeros: list[dict[str, str]] = []
    for choice in listed:
        for name, values in choice.items():
            known = {member["value"] for member in model.attributes[name].members} if name in used else set()
            if not known.issuperset(values):
                raise ModelError(f"{where}: starts_at_zero lists {name} {values}, which it cannot have")
        zeros += [dict(zip(choice, values, strict=True)) for values in itertools.product(*choice.values())]
    return tuple(zeros)


def _every_member(model: Model, where: str, uses: tuple[Use, ...]) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {}
    for use in uses:
        if use.level in {"required", "recommended"}:
            members[use.name] = [member["value"] for member in model.attributes[use.name].members]
            if not members[use.name]:
                raise ModelError(f"{where}: starts at zero, but {use.name} lists no values")
    return members
