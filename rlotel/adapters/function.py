"""Any function of a trainer that is given a dictionary of values, and perhaps a step."""

from __future__ import annotations

from collections.abc import Mapping

from rlotel.adapters.log import Log
from rlotel.patching import Call, Patches

STEPS = ("step", "global_step", "iteration")
"""Parameters that tell a step."""


def connect(patches: Patches, log: Log, target: str) -> None:
    """Take the first argument that is a mapping, keywords that were gathered in one included."""

    def logged(call: Call) -> None:
        given = call.arguments
        values = next(
            (one for one in given.values() if isinstance(one, Mapping) and one is not call.instance), None
        )
        if values is not None:
            log.take(values, next((given[name] for name in STEPS if name in given), None))

    patches.watch(target, after=logged)
