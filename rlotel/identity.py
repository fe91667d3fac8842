"""Who a point or a span speaks of: the run, its framework, algorithm, model and environment.

Some of it is known only when the trainer starts, in code that the user did not write. So an identity collects
until it is frozen, at the first loop or after a short wait, and never changes afterwards: a label that appears
later would split every series in two.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping

from rlotel import gang, gates
from rlotel.config import Config
from rlotel.resource import ray_submission_id
from rlotel.semconv import attributes as attr

CUSTOM = "custom"
"""The `rl.system` of a loop that no known framework runs."""

MOST_WAITS = 15
"""How often what is expected is waited for: loading a model may take minutes, and a hang must be told of."""

RUN_ID_VARIABLES = ("JOBSET_UID", "JOBSET_NAME", "SLURM_JOB_ID")
"""What schedulers call the job, in the order they are believed, after the settings and Ray."""

_NAMES = {
    "run_id": attr.RUN_ID.name,
    "system": attr.SYSTEM.name,
    "system_version": attr.SYSTEM_VERSION.name,
    "algorithm": attr.ALGORITHM.name,
    "model": attr.MODEL_NAME.name,
    "environment": attr.ENVIRONMENT_NAME.name,
    "environment_type": attr.ENVIRONMENT_TYPE.name,
}

IDENTITY = frozenset(_NAMES)
"""The settings that are part of it."""


class Identity:
    """The identity of one process's telemetry; the user's settings win over what an integration finds."""

    def __init__(self, config: Config, environ: Mapping[str, str]) -> None:
        self._given = {field: getattr(config, field) for field in _NAMES if getattr(config, field)}
        self._given.setdefault("run_id", _job_id(environ) or secrets.token_hex(6))
        self._found: dict[str, object] = {}
        self._expected: set[str] = set()
        self._waits = 0
        self._frozen: dict[str, str] | None = None

    @property
    def run_id(self) -> str:
        """The run's id, known from the start."""
        return gates.text(self._given["run_id"])

    @property
    def frozen(self) -> bool:
        """Whether it can no longer change."""
        return self._frozen is not None

    def expect(self, *fields: str) -> None:
        """Tell that an integration will offer these fields, in a while."""
        self._expected.update(fields)

    def waits(self) -> bool:
        """After some time: whether to wait as long again for what is expected."""
        self._waits += 1
        return self._waits < MOST_WAITS and not self._expected <= {*self._found, *self._given}

    def offer(self, **found: object) -> bool:
        """Tell what a framework's configuration says; fields as in `Config`, None where unknown.

        Returns:
            False if it came too late to be used.
        """
        if unknown := found.keys() - _NAMES:
            raise TypeError(f"no part of an identity: {', '.join(sorted(unknown))}")
        if self._frozen is not None:
            return False
        self._found.update({field: value for field, value in found.items() if not _empty(value)})
        return True

    def insist(self, **given: object) -> bool:
        """What the user says after all, and which therefore wins; as `offer` otherwise."""
        if self._frozen is not None:
            return False
        self._given.update({field: value for field, value in given.items() if not _empty(value)})
        return True

    def adopt(self, attributes: Mapping[str, str]) -> bool:
        """Take over the identity of the process that has the loop, by attribute name; its labels are right.

        Returns:
            Whether there was one to take over.
        """
        if self._frozen is None and attributes:
            self._given.update({field: attributes[name] for field, name in _NAMES.items() if name in attributes})
        return bool(attributes)

    def freeze(self) -> Mapping[str, str]:
        """Settle it, once: the attributes for every point and for the Resource."""
        if self._frozen is None:
            known = {"system": CUSTOM, **self._found, **self._given}
            self._frozen = {}
            for field, name in _NAMES.items():
                # What has no text is unknown; nothing a framework says may keep the rest from being exported.
                with contextlib.suppress(KeyError, gates.Refused):
                    self._frozen[name] = gates.text(known[field])
        return self._frozen


def _empty(value: object) -> bool:
    return value is None or (type(value) is str and not value.strip())


def _job_id(environ: Mapping[str, str]) -> str | None:
    if submission := ray_submission_id(environ):
        return submission
    return next((value for name in RUN_ID_VARIABLES if (value := environ.get(name))), None) or gang.name(environ)


def attempt(environ: Mapping[str, str]) -> int:
    """How often the job was restarted before this process, as its launcher counts; 0 where nobody counts."""
    variables = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT", "JOBSET_RESTART_ATTEMPT")
    return next((count for name in variables if (count := gang.number(environ, name))), 0)


def launch(environ: Mapping[str, str]) -> str:
    """What tells this launch of the run from the next; the same in all ranks that were launched together."""
    ranks = gang.name(environ)
    return secrets.token_hex(4) if ranks is None else f"{ranks}.{attempt(environ)}"
