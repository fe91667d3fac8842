"""Reading what a framework says of a run: its release, settings at a path, what paths and names mean."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from importlib import metadata
from pathlib import PurePath
from typing import Any

_SPLITS = frozenset({"train", "training", "test", "val", "validation", "dev", "data"})
_OBJECT_STORAGE = ("gs://", "s3://", "hdfs://", "oss://", "abfs://", "az://")


def dig(config: object, path: str) -> Any:
    """The setting at a dotted path, None where there is none.

    Configurations are dicts, OmegaConf objects, dataclasses, pydantic models or namespaces, and mixtures of them.
    """
    found: Any = config
    # One that refers to another that is missing raises as it is read.
    with contextlib.suppress(Exception):
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)
            if found is None:
                break
        return found
    return None


def product(one: Any, other: Any) -> int | None:
    """How many there are in all, such as nodes times GPUs of each; None if either is unknown."""
    return int(one) * int(other) if one and other else None


def model_name(path: object) -> str | None:
    """A name on the Hugging Face Hub as it is, a folder by its last part."""
    if not path:
        return None
    text = str(path).rstrip("/")
    return PurePath(text).name if text.startswith(("/", "~", ".")) or "://" in text else text


def data_set(files: Any) -> str | None:
    """The data set that the one file of prompts belongs to: `gsm8k` of `~/data/gsm8k/train.parquet`."""
    if not isinstance(files, str):
        several = list(files or ())
        if len(several) != 1:
            return None
        files = several[0]
    path = PurePath(str(files))
    return path.parent.name or None if path.stem in _SPLITS else path.stem


def checkpoint_tier(folder: object) -> str | None:
    """Where checkpoints go, if the path says it; a mounted folder may be anything."""
    return "object_storage" if folder and str(folder).startswith(_OBJECT_STORAGE) else None


def version(distribution: str) -> str | None:
    """The release that is installed; None of a checkout that is only on the path."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
