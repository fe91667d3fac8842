"""The protobuf messages of event files and of W&B's, with the fields that scalars are in and no others.

Made here rather than taken from `tensorboard` and `wandb`: they bring some 100 MB and 60 MB, and newer releases
of wandb have no reader of these files any more. Field numbers are those of TensorFlow's `event.proto`,
`summary.proto` and `tensor.proto`, and of `wandb_internal.proto`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "rlotel.importing"
_TYPES = {
    "double": 1,
    "float": 2,
    "int64": 3,
    "int32": 5,
    "bytes": 12,
}
"""Numbers of `FieldDescriptorProto.Type`; what is not here is a message of the same table."""

_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "Event": (("wall_time", 1, "double"), ("step", 2, "int64"), ("summary", 5, "Summary")),
    "Summary": (("value", 1, "*SummaryValue"),),
    "SummaryValue": (("tag", 1, "bytes"), ("simple_value", 2, "float"), ("tensor", 8, "Tensor")),
    "Tensor": (
        ("dtype", 1, "int32"),
        ("shape", 2, "Shape"),
        ("content", 4, "bytes"),
        ("float_val", 5, "*float"),
        ("double_val", 6, "*double"),
    ),
    "Shape": (("dim", 2, "*Dim"),),
    "Dim": (("size", 1, "int64"),),
    "Record": (("history", 2, "History"), ("run", 17, "RunRecord")),
    "History": (("item", 1, "*Item"), ("step", 2, "HistoryStep")),
    "HistoryStep": (("num", 1, "int64"),),
    "Item": (("key", 1, "bytes"), ("nested_key", 2, "*bytes"), ("value_json", 16, "bytes")),
    "RunRecord": (("run_id", 1, "bytes"),),
}
"""Fields by message: name, number and type, with a star where there may be several.

Texts are bytes here: of a damaged file they may be no texts.
"""


def text(found: bytes) -> str:
    """What a field holds that is a text."""
    return found.decode("utf-8", "replace")


@cache
def message(name: str) -> Any:
    """The class of a message."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto2")
    for name_of_message, fields in _MESSAGES.items():
        described = file.message_type.add(name=name_of_message)
        for field, number, kind in fields:
            bare = kind.lstrip("*")
            described.field.add(
                name=field,
                number=number,
                label=3 if kind.startswith("*") else 1,
                type=_TYPES.get(bare, 11),
                type_name=None if bare in _TYPES else f".{_PACKAGE}.{bare}",
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
