"""What a launcher hands to processes that do not inherit its environment: which run they belong to, and settings.

It travels as four variables. Three are facts of the run; the settings go in one of JSON, `RLOTEL_DEFAULTS`, and
count only where the process that gets them has none of its own: a worker's pod knows its collector better, and
what somebody gave for the workers on purpose wins. Never handed over: headers, which may hold keys, since others
can read what goes this way; and `OTEL_RESOURCE_ATTRIBUTES`, which describe the machine they were set for.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping

from rlotel import gang
from rlotel.config import SETTINGS, Config, variable_of

ENABLED = "RLOTEL_ENABLED"
RUN_ID = "RLOTEL_RUN_ID"
ATTEMPT = "RLOTEL_ATTEMPT"
"""In the environment of every process below the one that called `instrument()` first: tells one launch of a run
from the next, and a launcher from its workers."""
LAUNCHER = "RLOTEL_LAUNCHER"
"""Beside it: which process the launcher is, so that it knows itself again in a program it became by `os.execv`."""
DEFAULTS = "RLOTEL_DEFAULTS"

SPAN_DELAY = "1000"
"""Milliseconds that spans wait in a worker, unless said otherwise: it may be killed at any moment."""

_OURS = frozenset({ENABLED, RUN_ID, ATTEMPT, LAUNCHER, DEFAULTS})
_KEPT = re.compile(r".*HEADERS|RLOTEL_CAPTURE")
_NAMES = re.compile(
    r"RLOTEL_\w+|OTEL_(EXPORTER_OTLP|BSP|METRIC)_\w+|OTEL_(TRACES|METRICS)_EXPORTER|OTEL_SERVICE_NAME"
)
_NOT_TOLD = frozenset({"run_id", "enabled", "headers", "capture"})


def launched(environ: Mapping[str, str]) -> bool:
    """Whether the run was launched by another process than this one."""
    return ATTEMPT in environ and environ.get(LAUNCHER) != (this_process() or None)


def this_process() -> str:
    """This process, told from every other, and the same whatever program it runs; empty where that is unknown."""
    return gang.process(os.getpid())


def variables(config: Config, environ: Mapping[str, str], run_id: str, attempt: str) -> dict[str, str]:
    """The environment of a worker.

    Args:
        config: this process's settings; those given as arguments are handed over too.
        environ: its environment.
        run_id: the run's id.
        attempt: what tells this launch of it from the next.
    """
    told = {name: value for name, value in environment(environ).items() if value and _is_told(name)}
    settings = {"OTEL_BSP_SCHEDULE_DELAY": SPAN_DELAY, **told, **_arguments(config)}
    return {ENABLED: "true", RUN_ID: run_id, ATTEMPT: attempt, DEFAULTS: json.dumps(settings, sort_keys=True)}


def _is_told(name: str) -> bool:
    return name not in _OURS and bool(_NAMES.fullmatch(name)) and not _KEPT.fullmatch(name)


def _arguments(config: Config) -> dict[str, str]:
    told = {}
    for setting in SETTINGS:
        if config.sources.get(setting.name) == "argument" and setting.name not in _NOT_TOLD:
            value = getattr(config, setting.name)
            told[variable_of(setting)] = ",".join(value) if isinstance(value, tuple) else str(value)
    return told


def environment(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment that settings are read from: the process's own, then what was handed to it."""
    try:
        handed = json.loads(environ.get(DEFAULTS) or "{}")
    except (ValueError, RecursionError):
        handed = {}
    if not isinstance(handed, dict) or not handed:
        return environ
    # An empty variable counts as unset.
    texts = {name: value for name, value in handed.items() if isinstance(value, str)}
    return {**texts, **{name: value for name, value in environ.items() if value or name not in texts}}
