"""TensorBoard's event files: TFRecords of `Event` messages, the scalars in them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError

from rlotel.importing.messages import message, text
from rlotel.importing.records import Logged, Losses
from rlotel.logged.times import moment

MARK = ".tfevents."
"""What is in the name of every event file."""
LONGEST = 1 << 30
"""Bytes of a record; a longer one is a length that was misread."""

_FLOAT, _DOUBLE = 1, 2
"""TensorFlow's numbers of these types."""


def read(path: Path, prefix: str, losses: Losses) -> Iterator[Logged]:
    """The scalars of one file, in the order they were written.

    Args:
        path: the file.
        prefix: where the file lies in its run, if that is part of its keys: as `add_scalars` writes them.
        losses: gets what cannot be read.
    """
    event = message("Event")
    with path.open("rb") as file:
        for record in _records(file, losses):
            try:
                found = event.FromString(record)
            except DecodeError:
                losses.lines += 1
                continue
            values = {key_of(text(value.tag), prefix): _number(value) for value in found.summary.value}
            known = {key: value for key, value in values.items() if value is not None}
            time = moment(found.wall_time)
            if known and time is None:
                losses.untimed += 1
            elif known and time is not None:
                yield Logged(time, known, found.step)


def key_of(tag: str, prefix: str) -> str:
    """The key of a tag: `add_scalars(main, {tag: …})` writes `main` into a folder of its own for each tag.

    That is `main/tag` with tensorboardX, `main_tag` with PyTorch.
    """
    if prefix.startswith(f"{tag}/"):
        return prefix
    flat = tag.replace("/", "_") + "_"
    return f"{tag}/{prefix.removeprefix(flat)}" if prefix.startswith(flat) else tag


def _records(file: BinaryIO, losses: Losses) -> Iterator[bytes]:
    """The records: length, checksum of the length, data, checksum of the data."""
    while header := file.read(12):
        length = int.from_bytes(header[:8], "little")
        if len(header) < 12 or length > LONGEST or _masked(header[:8]) != int.from_bytes(header[8:], "little"):
            losses.torn.append(file.name)
            return
        body = file.read(length + 4)
        if len(body) < length + 4:
            losses.torn.append(file.name)  # the process was killed as it wrote
            return
        yield body[:length]


def _number(value: Any) -> float | None:
    """A scalar, in the old style or the new; None for an image, a histogram or a text."""
    if value.HasField("simple_value"):
        return float(value.simple_value)
    if not value.HasField("tensor") or any(dim.size != 1 for dim in value.tensor.shape.dim):
        return None
    tensor = value.tensor
    if tensor.dtype == _FLOAT:
        return _one(tensor.float_val, tensor.content, "<f")
    return _one(tensor.double_val, tensor.content, "<d") if tensor.dtype == _DOUBLE else None


def _one(listed: Any, content: bytes, form: str) -> float | None:
    if listed:
        return float(listed[0])
    return float(struct.unpack(form, content)[0]) if len(content) == struct.calcsize(form) else None


def _crc_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


_CRC = _crc_table()


def _masked(data: bytes) -> int:
    """TFRecord's checksum: CRC-32C, rotated. In Python it is slow, and so only lengths are checked by it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
