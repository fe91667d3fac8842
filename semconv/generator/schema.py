"""The JSON Schema (draft 2020-12) of the model's files, and checking them against it."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import jsonschema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TEXT = {"type": "string", "minLength": 1}
STABILITY = {"enum": ["development", "alpha", "beta", "release_candidate", "stable"]}
ORIGINS = ["proposal", "google_dashboard", "nemo_rl", "opentelemetry", "rlotel"]
SIGNALS = ["latency", "traffic", "errors", "saturation", "run", "rlotel"]
OWNERS = ["launcher", "loop", "node", "process"]


def schema(files: dict[str, Any], buckets: Iterable[str]) -> dict[str, Any]:
    """The schema of these files, which lists the attributes they define and the bucket sets there are."""
    attributes = sorted(_defined(files))
    uses = {"type": "array", "items": {"$ref": "#/$defs/use"}}
    common = {"id": TEXT, "type": TEXT, "stability": STABILITY, "brief": TEXT, "note": TEXT, "attributes": uses}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A file of rlotel's semantic model",
        "description": "OpenTelemetry Weaver's groups, with what is rlotel's under annotations.rlotel.",
        **_closed({"groups": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/group"}}}, ["groups"]),
        "$defs": {
            "group": _by_type(),
            "registry": _closed(
                {
                    "id": {"type": "string", "pattern": r"^registry\."},
                    "type": TEXT,
                    "display_name": TEXT,
                    "brief": TEXT,
                    "attributes": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/definition"}},
                    "annotations": _ours({"origin": {"enum": ORIGINS}}),
                },
                ["id", "type", "display_name", "brief", "attributes"],
            ),
            "uses": _closed(
                {"id": TEXT, "type": TEXT, "brief": TEXT, "extends": TEXT, "attributes": uses},
                ["id", "type", "brief", "attributes"],
            ),
            "metric": _metric(common, sorted(buckets)),
            "span": _closed(
                {
                    **common,
                    "span_kind": {"const": "internal"},
                    "annotations": _ours({"origin": {"enum": ORIGINS}}),
                },
                ["id", "type", "span_kind", "stability", "brief", "attributes", "annotations"],
            ),
            "definition": _definition(),
            "use": _closed(
                {"ref": {"enum": attributes}, "requirement_level": _requirement()},
                ["ref", "requirement_level"],
            ),
        },
    }


def problems(schema: dict[str, Any], files: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the files, by name."""
    validator = jsonschema.Draft202012Validator(schema)
    for name, content in files.items():
        for error in sorted(validator.iter_errors(content), key=lambda error: list(map(str, error.absolute_path))):
            yield f"{name}: {_where(content, list(error.absolute_path))}: {_message(error)}"


def _defined(files: dict[str, Any]) -> Iterator[str]:
    """The ids of the registry's attributes, in files that may be wrong in any way."""
    for content in files.values():
        groups = content.get("groups") if isinstance(content, dict) else None
        for group in groups if isinstance(groups, list) else ():
            attributes = group.get("attributes") if isinstance(group, dict) else None
            for attribute in attributes if isinstance(attributes, list) else ():
                if isinstance(attribute, dict) and isinstance(attribute.get("id"), str):
                    yield attribute["id"]


def _message(error: jsonschema.ValidationError) -> str:
    known = error.validator_value
    if error.validator != "enum" or not isinstance(known, list):
        return error.message
    near = difflib.get_close_matches(str(error.instance), known, n=3, cutoff=0.5)
    return f"{error.instance!r} is unknown" + (f"; did you mean {' or '.join(near)}?" if near else "")


def _where(content: Any, path: list[Any]) -> str:
    """The path of an error with the group's id for its number, which nobody would count out."""
    if len(path) > 1 and isinstance(group := content["groups"][path[1]], dict):
        path = [group.get("id", path[1]), *path[2:]]
    return " > ".join(map(str, path)) or "top"


def _closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _ours(properties: dict[str, Any], required: Iterable[str] = ()) -> dict[str, Any]:
    return _closed({"rlotel": _closed(properties, list(required))}, ["rlotel"])


def _by_type() -> dict[str, Any]:
    """A group is checked by what it says it is, so that a message is about that and not about all kinds."""

    def when(conditions: dict[str, Any], kind: str) -> dict[str, Any]:
        return {"if": {"properties": conditions}, "then": {"$ref": f"#/$defs/{kind}"}}

    registry = {"pattern": r"^registry\."}
    return {
        "type": "object",
        "properties": {"id": TEXT, "type": {"enum": ["attribute_group", "metric", "span"]}},
        "required": ["id", "type"],
        "allOf": [
            when({"type": {"const": "attribute_group"}, "id": registry}, "registry"),
            when({"type": {"const": "attribute_group"}, "id": {"not": registry}}, "uses"),
            when({"type": {"const": "metric"}}, "metric"),
            when({"type": {"const": "span"}}, "span"),
        ],
    }


def _metric(common: dict[str, Any], buckets: list[str]) -> dict[str, Any]:
    zero_sets = {
        "type": "array",
        "minItems": 1,
        "items": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "array", "items": TEXT}},
    }
    ours = _ours(
        {
            "signal": {"enum": SIGNALS},
            "origin": {"enum": ORIGINS},
            "owner": {"enum": OWNERS},
            "buckets": {"enum": buckets},
            "starts_at_zero": {"oneOf": [{"const": True}, zero_sets]},
        },
        ["signal", "origin", "owner"],
    )
    return _closed(
        {
            **common,
            "metric_name": TEXT,
            "instrument": {"enum": ["counter", "updowncounter", "gauge", "histogram"]},
            "unit": {"type": "string"},
            "extends": TEXT,
            "annotations": ours,
        },
        ["id", "type", "metric_name", "instrument", "unit", "stability", "brief", "extends", "annotations"],
    )


def _definition() -> dict[str, Any]:
    value = {"type": "string", "pattern": r"^[a-z0-9_.]+$"}
    member = _closed(
        {
            "id": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},
            "value": value,
            "brief": TEXT,
            "stability": STABILITY,
        },
        ["id", "value", "stability"],
    )
    members = _closed({"members": {"type": "array", "minItems": 1, "items": member}}, ["members"])
    ours = _ours({"closed": {"type": "boolean"}, "origin": {"enum": ORIGINS}})
    return _closed(
        {
            "id": TEXT,
            "type": {"oneOf": [{"enum": ["string", "int", "double", "boolean"]}, members]},
            "stability": STABILITY,
            "brief": TEXT,
            "note": TEXT,
            "examples": {"type": "array", "minItems": 1},
            "annotations": ours,
        },
        ["id", "type", "stability", "brief"],
    )


def _requirement() -> dict[str, Any]:
    condition = _closed({"conditionally_required": TEXT}, ["conditionally_required"])
    return {"oneOf": [{"enum": ["required", "recommended", "opt_in"]}, condition]}
