"""What verl logs, told by its keys: values of training become gauges, those of a validation scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rlotel.errors import log
from rlotel.integrations import tables
from rlotel.integrations.verl.tables import ALL_ABORTED, GAUGES, MFU, VALIDATION
from rlotel.recorder import Recorder
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m

ABORTED = "all_samples_aborted"


def training(recorder: Recorder, data: Mapping[str, Any]) -> None:
    """Set the gauges of an iteration."""
    aborted = data.get(ALL_ABORTED) == 1
    if aborted:
        recorder.instruments.add(m.FINDINGS, 1, {attr.FINDING_NAME.name: ABORTED})
        log.warning("all rollouts of an iteration were aborted: it has no reward")
    tables.tell(recorder, _without_nan(data) if aborted else data, GAUGES)


def mfu(recorder: Recorder, data: Mapping[str, Any]) -> None:
    """Set verl's own model FLOPs utilization."""
    tables.tell(recorder, _without_nan(data), MFU)


def validation(recorder: Recorder, data: Mapping[str, Any]) -> None:
    """Set the scores of a validation; they may come with an iteration's values or by themselves."""
    for key, value in data.items():
        if key.startswith(VALIDATION):
            recorder.set(m.EVALUATION_SCORE, value, {attr.EVALUATION_NAME.name: key.removeprefix(VALIDATION)})


def _without_nan(data: Mapping[str, Any]) -> dict[str, Any]:
    """What verl writes where there was nothing to compute from is unknown, and no finding."""
    return {key: value for key, value in data.items() if not (isinstance(value, float) and math.isnan(value))}
