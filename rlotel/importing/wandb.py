"""W&B's files of offline runs: a log in LevelDB's format of `Record` messages, the history in them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError

from rlotel.importing.messages import message, text
from rlotel.importing.records import Logged, Losses, Unreadable
from rlotel.logged.times import moment

SUFFIX = ".wandb"
_MAGIC = b":W&B\xe1\xbe"
_FILE_HEADER, _HEADER, _BLOCK = 7, 7, 32 * 1024
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_TIME, _STEP = "_timestamp", "_step"


def read(path: Path, losses: Losses) -> Iterator[Logged]:
    """The history of one file, a step at a time.

    Raises:
        Unreadable: it is no such file.
    """
    for record in _messages(path, losses):
        if not record.HasField("history"):
            continue
        values = {_key(item): _value(item.value_json) for item in record.history.item}
        time = moment(values.pop(_TIME, None))
        if time is None:
            losses.untimed += 1
            continue
        step = values.pop(_STEP, record.history.step.num)
        own = {
            key: value for key, value in values.items() if not key.startswith("_")
        }  # not W&B's, such as _runtime
        yield Logged(time, own, step, whole=True)


def run_id(path: Path) -> str | None:
    """The id of the run in a file.

    Raises:
        Unreadable: it is no such file.
    """
    for record in _messages(path, Losses()):
        if record.HasField("run"):
            return text(record.run.run_id) or None
        if record.HasField("history"):
            return None
    return None


def _messages(path: Path, losses: Losses) -> Iterator[Any]:
    kind = message("Record")
    with path.open("rb") as file:
        if not file.read(_FILE_HEADER).startswith(_MAGIC):
            raise Unreadable(f"{path} is no file of a W&B run")
        for record in _records(file, losses):
            try:
                yield kind.FromString(record)
            except DecodeError:  # noqa: PERF203 - a record is slower than a try
                losses.lines += 1


def _records(file: BinaryIO, losses: Losses) -> Iterator[bytes]:
    """The records, put together of their chunks: checksum, length and kind of each, and its data."""
    parts: list[bytes] = []
    while True:
        left = _BLOCK - file.tell() % _BLOCK
        if left < _HEADER:
            file.read(left)
        header = file.read(_HEADER)
        if not header:
            return
        crc, length, kind = int.from_bytes(header[:4], "little"), int.from_bytes(header[4:6], "little"), header[6:]
        data = file.read(length)
        if len(header) < _HEADER or len(data) < length or zlib.crc32(kind + data) != crc:
            losses.torn.append(file.name)  # the run was killed as it wrote, or is still writing
            return
        if kind[0] in (_FULL, _FIRST):
            parts = []
        parts.append(data)
        if kind[0] in (_FULL, _LAST):
            yield b"".join(parts)


def _key(item: Any) -> str:
    return text(item.key) or ".".join(map(text, item.nested_key))


def _value(written: bytes) -> Any:
    try:
        return json.loads(written)
    except ValueError:
        return None
